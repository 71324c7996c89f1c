"""Visits to all hosts at once: record, look, check, watch, clean up. One bad host never loses the others."""
