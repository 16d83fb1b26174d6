"""How networks are written down as packs, kept on disk, and found again."""
