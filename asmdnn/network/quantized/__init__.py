"""Networks of 8-bit integers: how files write them, and what they become."""
