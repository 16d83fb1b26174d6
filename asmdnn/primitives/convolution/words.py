"""Names of algorithms, as users give them: checked."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.types import Algorithm


def algorithm_of(primitive: str, name: Any) -> Algorithm:
    """An Algorithm of a convolution or a deconvolution, or one by its last word.  Raises InvalidArguments."""
    found = algorithms_of(primitive)
    if isinstance(name, Algorithm) and name in found.values():
        return name
    if not isinstance(name, str) or name not in found:
        raise InvalidArguments(f"algorithm {shown(name)} is not one of {', '.join(found)}{resembling(name, found)}")
    return found[name]


@cache
def algorithms_of(primitive: str) -> Mapping[str, Algorithm]:
    """By their last words."""
    return {each.value.removeprefix(f"{primitive}_"): each for each in Algorithm if each.value.startswith(primitive)}
