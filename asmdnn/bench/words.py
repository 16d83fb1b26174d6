"""Options of `asmdnn bench`: what one is, how its words are read, and those that every driver has."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from asmdnn.bench.values import TYPES
from asmdnn.bench.vocabulary import ALL_DATA_TYPES, DIRECTIONS
from asmdnn.errors import InvalidArguments, Unimplemented, resembling
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.records import dataclass

LARGEST_NUMBER = 2**31 - 1
LARGEST_STRIDE = 2**46


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """What oneDNN has and this library not yet: the option that asks for it, and what is missing."""

    option: str
    reason: str

    def __str__(self) -> str:
        return f"{self.option}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the options say for one problem.  isa, threads: "" and 0 mean this machine's.

    A driver adds its own options as fields of a subclass; the default of a field is that of its option.  unbuilt: what
    the problem cannot be computed without.  rounds 0: as many as max_ms allows.  max_gflop 0: no limit.  impl,
    skip_impl: parts of names.
    """

    mode: str = "C"
    isa: str = ""
    threads: int = 0
    peer: str = ""
    max_ms: int = 3000
    engine: str = "cpu"
    impl: tuple[str, ...] = ()
    skip_impl: tuple[str, ...] = ()
    match: str = ""
    start: int = 0
    repeats: int = 1
    rounds: int = 0
    check_memory: bool = True
    max_gflop: float = 0.0
    verbose: int = 0
    failures: bool = True
    unbuilt: tuple[Unbuilt, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """`--name=word`: the field of the settings, the value of a word, and back.

    parse raises InvalidArguments for a word that makes no sense, Unimplemented for one that only oneDNN can do yet.
    takes_list: words with commas between them, and every problem runs with each.  describes: a case, so that its words
    have it; other options choose cases, and say what is shown of them.
    """

    field: str
    parse: Callable[[str], Any]
    help: str
    takes_list: bool = False
    show: Callable[[Any], str] = str
    describes: bool = True


def one_of(*choices: str) -> Callable[[str], str]:
    """The choice that equals the word, whatever its case."""

    def parse(word: str) -> str:
        for choice in choices:
            if choice.lower() == word.lower():
                return choice
        raise InvalidArguments(f"must be one of {', '.join(choices)}{resembling(word, choices)}")

    return parse


def after(prefix: str, parse: Callable[[str], str]) -> Callable[[str], str]:
    """A word with or without a prefix that benchdnn gives it."""
    return lambda word: parse(word.lower().removeprefix(prefix))


def renamed(names: Mapping[str, str], parse: Callable[[str], str]) -> Callable[[str], str]:
    """A word, of which some have other names, in lower case."""
    return lambda word: parse(names.get(word.lower(), word))


def lacking(reasons: Mapping[str, str], parse: Callable[[str], str]) -> Callable[[str], str]:
    """A word; those that only oneDNN knows raise Unimplemented, each with its reason."""

    def known(word: str) -> str:
        if word.lower() in reasons:
            raise Unimplemented(reasons[word.lower()])
        return parse(word)

    return known


def number(smallest: int, largest: int = LARGEST_NUMBER) -> Callable[[str], int]:
    """A whole number in a range."""

    def parse(word: str) -> int:
        digits = word.removeprefix("-")
        if digits.isascii() and digits.isdecimal() and len(digits) <= 10 and smallest <= int(word) <= largest:
            return int(word)
        raise InvalidArguments(f"must be a whole number from {smallest} to {largest}")

    return parse


def tag(word: str) -> str:
    """The letters or the name of a memory format, as MemoryDesc takes it; undef leaves it to the library, as any."""
    if not (word.isascii() and word.isalnum()):
        raise InvalidArguments("must be any, nchw, nhwc, nChw8c or another format tag")
    return "any" if word == "undef" else word


def boolean(word: str) -> bool:
    """true or false, which are 1 and 0 too."""
    return word == "1" or (word != "0" and one_of("true", "false")(word) == "true")


def data_type(*names: str) -> Callable[[str], str]:
    """One of these data types, of all if none is named, or twice the same, of src and dst; oneDNN's others, and two
    different ones, raise Unimplemented."""
    built = names or TYPES

    def parse(word: str) -> str:
        given = word.lower().split(":")
        if len(given) <= 2 and ALL_DATA_TYPES.issuperset(given) and (len({*given}) > 1 or given[0] not in built):
            raise Unimplemented(f"{word.lower()} is not built yet, only {', '.join(built)}")
        return one_of(*built)(given[0] if len(given) == 2 else word)

    return parse


def direction(*built: str) -> Callable[[str], str]:
    """One of these; oneDNN's others raise Unimplemented."""

    def parse(word: str) -> str:
        if word.upper() in DIRECTIONS and word.upper() not in built:
            raise Unimplemented(f"{word.upper()} is not built yet, only {', '.join(built)}")
        return one_of(*built)(word)

    return parse


def each(parse: Callable[[str], str]) -> Callable[[str], str]:
    """One word for all tensors, or one for each: `axb:abx`."""
    return lambda word: ":".join(map(parse, word.split(":")))


def words_of_each(word: str, count: int) -> list[str]:
    """What such a word says of each of so many tensors: those that it leaves out are as the last."""
    found = word.split(":")
    return (found + found[-1:] * count)[:count]


def of_two(parse: Callable[[str], str], example: str) -> Callable[[str], str]:
    """One word for two tensors, or one for each, of which `any` is that of the first: as short as it may be written."""

    def words(word: str) -> str:
        first, *more = map(parse, word.split(":"))
        if len(more) > 1:
            raise InvalidArguments(f"must be one word for both tensors, or one for each, such as {example}")
        return first if not more or more[0] in ("any", first) else f"{first}:{more[0]}"

    return words


Strides = tuple[tuple[int, ...], ...]  # of each tensor, () where a tag says it


def strides(tensors: int) -> Callable[[str], Strides]:
    """`60x1::20x1`: the distance of neighbours along each dim, in elements; tensors may be left out."""

    def parse(word: str) -> Strides:
        words = word.split(":")
        if not re.fullmatch("[0-9x:]*", word) or len(words) > tensors:
            raise InvalidArguments(f"must be the strides of {tensors} tensors, such as {':'.join(['8x1'] * tensors)}")
        found = tuple(tuple(number(0, LARGEST_STRIDE)(n) for n in w.split("x")) if w else () for w in words)
        return found + ((),) * (tensors - len(found)) if any(found) else ()

    return parse


def show_strides(found: Strides) -> str:
    return ":".join("x".join(map(str, one)) for one in found)


def option(
    parse: Callable[[str], Any], help: str, show: Callable[[Any], str] = str, field: str = "", describes: bool = True
) -> Option:
    """One of a driver, which takes a list.  field: "" for that of its name, without attr- and with _ for -."""
    return Option(field, parse, help, True, show, describes)


def axis(meaning: str) -> Option:
    """The option of one axis of a tensor."""
    return option(number(-MAX_NDIMS, MAX_NDIMS - 1), meaning)


def flag(meaning: str) -> Option:
    """An option that is true or false."""
    return option(boolean, meaning)


# Options that many drivers have.
LAYOUT = option(tag, "layout: abx (default), axb, aBx16b, nchw, nChw8c, ...")
DT = option(data_type(), f"data type: f32 (default), {', '.join(TYPES[1:])}")
INPLACE = flag("true: the result replaces src; false (default)")
DATA = f"{', '.join(TYPES)}"
FROM_TO = {  # one tensor to another
    "sdt": option(data_type(), f"data type of src, f32 by default: {DATA}"),
    "ddt": option(data_type(), "data type of dst, likewise"),
    "stag": option(tag, "layout of src: abx (default), axb, aBx16b, nchw, nChw8c, ..."),
    "dtag": option(tag, "layout of dst: any (default) is that of src"),
}
TAGS = option(each(tag), "layouts of the sources: abx (default), or one for each, axb:abx")
DTAG = option(tag, "layout of dst: any (default) is that of the first source")
SDT = option(data_type(), "data type of src: f32 (default), bf16, f16, s32, s8, u8")
DDT = option(data_type(), "data type of dst: f32 (default), bf16, f16, s32, s8, u8")
IMAGES = option(number(0), "images, instead of each problem's own (0, the default)")
FIRST_DIM = option(number(0), "the first dim, instead of each problem's own (0, the default)")
