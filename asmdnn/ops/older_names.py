"""What arguments were called before: both words are taken."""

from collections.abc import Container, Mapping
from typing import Any

from asmdnn.errors import InvalidArguments

RENAMED = {"b": "bias", "image": "dims", "w": "weights"}


def older_of(names: Container[str]) -> dict[str, str]:
    """The older words for some of these names, and the names."""
    return {old: new for old, new in RENAMED.items() if new in names and old not in names}


def with_new_names(given: Mapping[str, Any], older: Mapping[str, str]) -> dict[str, Any]:
    """Raises InvalidArguments where something is given by both of its names."""
    if twice := next((old for old, new in older.items() if {old, new} <= given.keys()), ""):
        raise InvalidArguments(f"{twice} is the older name of {older[twice]}: leave it out")
    return {older.get(name, name): value for name, value in given.items()}
