"""The errors that users see.  Every message is one sentence: the field, its value, and the way out."""

from collections.abc import Iterable


class AsmdnnError(Exception):
    """Base class of everything that asmdnn raises on purpose."""


class InvalidArguments(AsmdnnError, ValueError):
    """An argument is wrong whatever the machine: the message names the field and what it must be."""


class Unimplemented(AsmdnnError, NotImplementedError):
    """The request is meaningful, but no implementation takes it here: the message lists each one's reason."""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown word: the name that it resembles, else all of them."""
    import difflib  # not above: it takes longer to import than this whole file, and most programs make no mistake

    known = list(names)
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), lower, 1)
    return f"did you mean {lower[near[0]]}?" if near else f"these are {', '.join(known)}"
