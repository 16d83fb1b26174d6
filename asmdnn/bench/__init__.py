"""benchdnn's language: problems, options, drivers, references, peers, timing."""
