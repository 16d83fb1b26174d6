"""What a step draws random numbers by: other seeds for each call and each place."""

WORD, GOLDEN, PLACES = 2**64, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


def mixed(seed: int, call: int, place: int) -> int:
    """An integer of 32 bits with a sign (Steele and others, Fast Splittable Pseudorandom Number Generators, 2014)."""
    z = (seed + (call + 1) * GOLDEN + (place + 1) * PLACES) % WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return ((z ^ z >> 31) & 0xFFFFFFFF) - 2**31
