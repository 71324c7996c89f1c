"""What Spark knows, by its REST interface: of a driver or a history server."""
