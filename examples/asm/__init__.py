"""Functions in machine code, each a script that runs, checks itself and ends with a table of times."""
