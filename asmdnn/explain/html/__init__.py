"""An explanation as one HTML page that needs no other file."""
