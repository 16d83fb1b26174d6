"""A network under several assumptions, on a page that one can play with."""
