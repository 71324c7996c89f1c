"""Options of the commands, and the objects made of them."""
