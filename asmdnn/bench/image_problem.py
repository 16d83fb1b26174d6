"""Problems that are the dims of an image and some numbers, as benchdnn writes them: `mb2ic64ih56_eps0.5n"name"`."""

import re
from collections.abc import Mapping, Sequence

from asmdnn.bench.problem_text import LONGEST_QUOTE, parse_name
from asmdnn.errors import InvalidArguments

SIZES = ("mb", "ic", "id", "ih", "iw")


def read_image(
    text: str, more_sizes: Sequence[str], numbers: Sequence[str]
) -> tuple[tuple[int, ...], dict[str, int], dict[str, float], str]:
    """(dims, further sizes, numbers, name); ih and iw of each other if one is left out, mb 2.

    Raises InvalidArguments.
    """
    shown = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."
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
            raise InvalidArguments(f"problem {shown!r}: expected sizes such as mb2ic64ih56, not {words[at:]!r}")
        at = match.end()
        if match[1]:
            found[match[1]] = int(match[2])
        elif match[3]:
            reals[match[3]] = _real(match[4], shown)
    if not found.get("ic"):
        raise InvalidArguments(f"problem {shown!r}: ic, the number of channels, is missing")
    sizes = {word: found[word] for word in more_sizes if word in found}
    return _dims(found), sizes, reals, parse_name(name) if named else ""


def _real(word: str, shown: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InvalidArguments(f"problem {shown!r}: {word!r} is not a number") from None


def _dims(found: Mapping[str, int]) -> tuple[int, ...]:
    square = found.get("ih") or found.get("iw")
    spatial = [found["id"]] if "id" in found else []
    spatial += [found.get("ih", square or 1), found.get("iw", square or 1)] if square or spatial else []
    return (found.get("mb", 2), found["ic"], *spatial)


def image_words(dims: Sequence[int]) -> str:
    """`mb2ic64ih56iw56`."""
    n, c, *spatial = dims
    axes = zip(SIZES[len(SIZES) - len(spatial) :], spatial, strict=True)
    return f"mb{n}ic{c}" + "".join(f"{axis}{size}" for axis, size in axes)


def quoted(name: str) -> str:
    return f'n"{name}"' if name else ""
