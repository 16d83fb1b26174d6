"""Networks of 8-bit integers: how files spell them, and what they become."""
