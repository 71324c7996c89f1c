"""Basic tools: errors, text, paths, bounded JSON, package files."""
