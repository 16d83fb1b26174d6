"""Problems that are the dims of an image and some numbers, as benchdnn writes them: `mb2ic64ih56_eps0.5n"name"`."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from asmdnn.bench.problem_text import Named, parse_name
from asmdnn.errors import InvalidArguments
from asmdnn.records import replace

AXES = ("id", "ih", "iw")
SIZES = ("mb", "ic", *AXES)
P = TypeVar("P", bound="OfImages")


class OfImages(Named):
    """A problem with `dims`, (n, c) and spatial ones, and a `name`."""

    __slots__ = ()
    dims: tuple[int, ...]
    name: str

    @property
    def tensors(self) -> tuple[tuple[int, ...]]:
        return (self.dims,)

    def with_images(self: P, mb: int) -> P:
        """With another first dim."""
        return replace(self, dims=(mb, *self.dims[1:]))  # type: ignore[type-var]  # a dataclass


def read_image(
    text: str, more_sizes: Sequence[str], numbers: Sequence[str]
) -> tuple[tuple[int, ...], dict[str, int], dict[str, float], str]:
    """(dims, further sizes, numbers, name); axes after the first one that is given are like the last one, mb is 2.

    Raises InvalidArguments.
    """
    words, named, name = text.partition("n")
    pattern = re.compile(
        rf"(?:({'|'.join((*more_sizes, *SIZES))})([0-9]{{1,9}})|({'|'.join(numbers)})([0-9.]+(?:e-?[0-9]+)?)|_)"
    )
    found: dict[str, int] = {}
    reals: dict[str, float] = {}
    at = 0
    while at < len(words):
        match = pattern.match(words, at)
        if not match:
            raise InvalidArguments(f"expected sizes such as mb2ic64ih56, not {words[at:]!r}")
        at = match.end()
        if match[1]:
            found[match[1]] = int(match[2])
        elif match[3]:
            reals[match[3]] = _real(match[4])
    if not found.get("ic"):
        raise InvalidArguments("ic, the number of channels, is missing")
    sizes = {word: found[word] for word in more_sizes if word in found}
    return _dims(found), sizes, reals, parse_name(name) if named else ""


def _real(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InvalidArguments(f"{word!r} is not a number") from None


def _dims(found: Mapping[str, int]) -> tuple[int, ...]:
    """As benchdnn: id alone is a cube, ih alone a square, iw alone a line."""
    given = [axis for axis in AXES if axis in found]
    axes = AXES[AXES.index(given[0]) :] if given else ()
    return (found.get("mb", 2), found["ic"], *(found.get(axis, found[given[-1]]) for axis in axes))


def image_words(dims: Sequence[int]) -> str:
    """`mb2ic64ih56iw56`."""
    n, c, *spatial = dims
    axes = zip(SIZES[len(SIZES) - len(spatial) :], spatial, strict=True)
    return f"mb{n}ic{c}" + "".join(f"{axis}{size}" for axis, size in axes)


def quoted(name: str) -> str:
    return f'n"{name}"' if name else ""
