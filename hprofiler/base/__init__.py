"""Small tools that every room uses: errors, text, paths, bounded JSON, package files."""
