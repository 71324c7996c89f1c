"""Tools for every room: errors, text, paths, bounded JSON, package files."""
