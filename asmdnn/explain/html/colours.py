"""Hues for names: each different, the same name always the same, whatever page it is on."""

from collections.abc import Iterable

GOLDEN_ANGLE = 137.508  # consecutive hues are as far apart as they can be, however many there are


def hue(number: int) -> int:
    """Degrees on the colour wheel; 0 is a calm blue."""
    return round(210 + number * GOLDEN_ANGLE) % 360


def hues(names: Iterable[str]) -> dict[str, int]:
    """A hue for every different name, in order of appearance."""
    return {name: hue(number) for number, name in enumerate(dict.fromkeys(names))}
