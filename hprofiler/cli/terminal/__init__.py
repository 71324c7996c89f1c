"""Output on the terminal, and questions to the user."""
