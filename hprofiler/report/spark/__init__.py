"""A Spark application in words, tables and pictures."""
