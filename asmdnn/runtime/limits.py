"""Limits in bytes of what is kept for later use: as set, else as ASMDNN_MEMORY_LIMITS says, else the defaults."""

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Final

from asmdnn import environment
from asmdnn.errors import InvalidArguments, resembling
from asmdnn.jit.pruning import parse_size

LIMITED: Final = ("plans", "programs", "calls", "networks", "scratchpads")


class Limited:
    """Something of which at most `limit_bytes` are kept; `name`: in the variable."""

    def __init__(self, default_bytes: int, name: str = "") -> None:
        self._default_bytes, self._name = default_bytes, name
        self._given: int | None = None

    @property
    def limit_bytes(self) -> int:
        if self._given is not None:
            return self._given
        if not environment.raw(environment.MEMORY_LIMITS):
            return self._default_bytes
        return _limits_in(environment.text(environment.MEMORY_LIMITS)).get(self._name, self._default_bytes)


@cache
def _limits_in(text: str) -> Mapping[str, int]:
    """The limits in words such as "plans:16M,scratchpads:1G"; what means nothing costs one warning."""
    found = {}
    for word in filter(None, map(str.strip, text.split(","))):
        name, _, size = word.partition(":")
        try:
            if name.lower() not in LIMITED:
                near = resembling(name, LIMITED)
                raise InvalidArguments(
                    f"there is no limit {name[:40]!r}: use {', '.join(LIMITED)}, as in plans:16M{near}"
                )
            found[name.lower()] = parse_size(name, size)
        except InvalidArguments as error:
            message = f"{environment.MEMORY_LIMITS}={text}: {error}; it is ignored."
            warnings.warn(message, RuntimeWarning, stacklevel=6)
    return found
