"""The archive: many runs as Parquet tables in one place, and questions to them."""
