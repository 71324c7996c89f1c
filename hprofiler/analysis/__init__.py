"""Everything that a report says, computed once from a run folder."""
