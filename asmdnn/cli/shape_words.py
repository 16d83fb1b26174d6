"""Dims on the command line: 1x3x48x320, several with commas, and ranges such as 1x3x48x32..640/8."""

import re
from collections.abc import Sequence
from itertools import product
from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.network.ranges import MOST_SHAPES

SIZE = r"[0-9]{1,9}(\.\.[0-9]{1,9}(/[0-9]{1,9})?)?"
DIMS = re.compile(rf"{SIZE}(x{SIZE})*")
RANGE = re.compile(r"([0-9]+)(?:\.\.([0-9]+)(?:/([0-9]+))?)?")


def several_dims(name: str, text: str) -> list[tuple[int, ...]]:
    """All that the dims of an input are, in order.  Raises InvalidArguments."""
    found = list[tuple[int, ...]]()
    for one in text.split(","):
        if not DIMS.fullmatch(one):
            raise InvalidArguments(f"--shape={name}:{text} has no dims such as 1x3x48x320, or 1x3x48x32..640/8")
        sizes = [sizes_of(name, each) for each in one.split("x")]
        if prod(map(len, sizes)) + len(found) > MOST_SHAPES:
            raise InvalidArguments(f"--shape={name}:{text} has more than {MOST_SHAPES} shapes: say larger steps")
        found += product(*sizes)
    return found


def sizes_of(name: str, text: str) -> Sequence[int]:
    """Of 48, 8..64 or 8..64/8: all multiples of 8 from 8 to 64.  Raises InvalidArguments for none."""
    found = RANGE.fullmatch(text)
    assert found is not None, "DIMS has looked at it"
    least, most, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    sizes = range(-(-least // step) * step, most + 1, step) if step else ()
    if not sizes:
        raise InvalidArguments(f"--shape={name}: {text} has no sizes: say one such as 8..64/8, the multiples of 8")
    return sizes
