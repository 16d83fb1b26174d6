"""The errors that users see.  Every message is one sentence: the field, its value, and the way out."""

from collections.abc import Iterable
from pathlib import PurePath

from asmdnn.forking import importing

LONGEST_MESSAGE = 500  # characters; a message quotes what it was given, which may be of any length
LONGEST_VALUE = 120
CUT = " ... "
MARKS = "-="  # of options, which make no word like another


class AsmdnnError(Exception):
    """Base class of everything that asmdnn raises on purpose.  Long messages are cut in the middle."""

    def __init__(self, message: str = "", *more: object) -> None:
        super().__init__(shortened(str(message), LONGEST_MESSAGE), *more)


class InvalidArguments(AsmdnnError, ValueError):
    """An argument is wrong whatever the machine: the message names the field and what it must be."""


class Unimplemented(AsmdnnError, NotImplementedError):
    """The request is meaningful, but no implementation takes it here: the message lists each one's reason."""


class OutOfMemory(AsmdnnError, MemoryError):
    """The system has not so much memory for a tensor or a scratchpad."""


class PlanError(AsmdnnError):
    """A plan would read or write the wrong bytes: a defect of asmdnn or of a planner of yours, never the caller's."""


class NotPackable(AsmdnnError):
    """A plan holds a value that files have no word for."""


def shortened(text: str, longest: int) -> str:
    """`text`, without its middle if it has more characters: the field stands in front, the way out after."""
    if len(text) <= longest:
        return text
    head = (longest - len(CUT)) * 2 // 3
    return text[:head] + CUT + text[head + len(CUT) - longest :]


def shown(value: object) -> str:
    """repr(value) for a message: of any object, whether it has a repr or not, on one line and of bounded length."""
    try:
        return shortened(" ".join(repr(value).split()), LONGEST_VALUE)
    except Exception as error:  # an integer of more than 4300 digits, or an object with a repr of its own
        return f"{type(value).__name__} without a repr ({type(error).__name__})"


def shown_path(path: object) -> str:
    """The path of a file for a message, without the class that it has."""
    return shown(str(path) if isinstance(path, PurePath) else path)


def reason_of(error: Exception) -> str:
    """What went wrong, for a message that names the file itself: of the system without its number."""
    return getattr(error, "strerror", None) or str(error)


def counted(number: int, noun: str) -> str:
    """So many of something: "1 dim", "2 dims", "0 entries"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("ry") else f"{number} {noun}s"


def not_one_of(name: str, given: object, known: Iterable[str]) -> str:
    """The message about a word that is none of the known ones, with the one that it resembles."""
    words = list(known)
    return f"{name} must be one of {', '.join(words)}, not {shown(given)}{resembling(given, words)}"


def no_attribute(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """What a module raises for a name that it has not; those of Python's protocols come with every import."""
    near = "" if name.startswith("_") else resembling(name, known)
    return AttributeError(f"module {module!r} has no attribute {name!r}{near}")


def resembling(given: object, known: Iterable[str]) -> str:
    """The end of a message that has named all known words: the one that the given one resembles, or ""."""
    near = did_you_mean(given, known) if isinstance(given, str) else ""
    return f": {near}" if near.startswith("did") else ""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown word: the name that it resembles, else all of them."""
    with importing():
        import difflib  # not above: it takes longer than this whole file, and most programs make no mistake

    known, given = list(names), word.lower().strip(MARKS)
    lower = {name.lower().strip(MARKS): name for name in known}
    near = difflib.get_close_matches(given, lower, 3)
    if not near:
        return f"these are {', '.join(known)}"
    likeness = {name: difflib.SequenceMatcher(None, name, given).ratio() for name in near}
    ranks = {name: (likeness[name], name.startswith(given)) for name in near}  # "ad" is add, not and
    best = max(near, key=lambda name: ranks[name])
    goes_on = [lower[name] for name in lower if ranks.get(name) == (likeness[best], True)]  # "conv" is conv1d or conv2d
    return f"did you mean {' or '.join(goes_on or [lower[best]])}?"
