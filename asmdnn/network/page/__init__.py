"""A network as a page that needs no other file."""
