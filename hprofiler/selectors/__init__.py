"""`-j` → Selector, from a name, a file, or an expression."""
