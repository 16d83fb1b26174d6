"""What the drivers of normalizations share: benchdnn's flags, and how far f32 arithmetic may be off."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.driver import Array
from asmdnn.bench.values import poison
from asmdnn.errors import InvalidArguments

Doubles = npt.NDArray[np.float64]
FLAG_BITS = {"G": 1, "C": 2, "H": 4, "R": 8, "A": 16}  # oneDNN's numbers; M, without mean, is newer
UNIT = 2.0**-23
STATISTICS_ULPS, ULPS = 8, 6


def flags(known: str) -> Callable[[str], str]:
    """Letters of `known`, each once, in its order; S of older files is CH."""

    def parse(word: str) -> str:
        letters = word.upper().replace("S", "CH")
        if len(set(letters)) < len(letters) or not set(letters) <= set(known):
            raise InvalidArguments(f"must be letters of {known}, each once")
        return "".join(letter for letter in known if letter in letters)

    return parse


def arrays_of(
    descs: Mapping[str, dnn.MemoryDesc], results: Sequence[str], given: bool, random: np.random.Generator
) -> dict[str, Array]:
    """Numbers for every argument, a variance that is given being positive; results are poison."""
    arrays: dict[str, Array] = {name: random.uniform(-1, 2, x.dims).astype(np.float32) for name, x in descs.items()}
    if given:
        arrays["variance"] = np.abs(arrays["variance"]) + np.float32(0.5)
    return arrays | {name: poison(descs[name].dims, dnn.f32) for name in results}


def normalized_error(
    centred: Doubles, factor: Doubles, scale: Doubles | float, shift: Doubles | float, x: Doubles
) -> Doubles:
    """Of (x - mean) * factor * scale + shift: the mean is off by some units of x's size, the factor by its own, and by
    what cancels in the variance of a row."""
    size = np.abs(x).max(-1, keepdims=True) if x.ndim else np.abs(x)
    moved = STATISTICS_ULPS * UNIT * size * factor * np.abs(scale)
    result = np.abs(centred * factor * scale)
    return np.asarray(moved + ULPS * UNIT * (2 * result + np.abs(shift)) * (1 + (size * factor) / 4))
