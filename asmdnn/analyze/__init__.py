"""How far a primitive is from the machine's limits: what its loops do, what they could cost, what they cost."""
