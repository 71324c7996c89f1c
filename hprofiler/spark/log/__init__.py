"""Event logs: their files and codecs, their events, and the application that these tell of."""
