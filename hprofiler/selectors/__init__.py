"""What `-j` means: a Selector, from a name, a file, or what the user typed."""
