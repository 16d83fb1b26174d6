"""How steps become one plan: buffers, barriers, the arena, and the order in which states are written."""
