"""The words of `asmdnn bench`: options, batch files and problems, in benchdnn's grammar.

An option stays in force for the problems after it, also out of and into batch files.  Options marked * take a list,
`--dir=FWD_I,FWD_B`: every problem then runs once for each combination.
"""

import difflib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from asmdnn.cli import batch_files
from asmdnn.cli.problems import LARGEST_NUMBER, ConvProblem, parse_problem
from asmdnn.errors import InvalidArguments


@dataclass(frozen=True, slots=True)
class Settings:
    """What the options say for one problem.  isa, threads: "" and 0 mean this machine's; mb 0: the problem's own."""

    mode: str = "C"
    dir: str = "FWD_B"
    dt: str = "f32"
    stag: str = "any"
    wtag: str = "any"
    dtag: str = "any"
    post_ops: tuple[str, ...] = ()
    mb: int = 0
    isa: str = ""
    threads: int = 0
    peer: str = ""
    max_ms: int = 3000

    @property
    def has_bias(self) -> bool:
        return self.dir == "FWD_B"

    def __str__(self) -> str:
        """The options that differ from their default, without mode: they are the same problem in each."""
        words = []
        for name, option in OPTIONS.items():
            value = getattr(self, option.field)
            if option.field != "mode" and value != getattr(DEFAULTS, option.field):
                words.append(f"--{name}={'+'.join(value) if isinstance(value, tuple) else value}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Case:
    """One run: a problem under its settings."""

    settings: Settings
    problem: ConvProblem

    def __str__(self) -> str:
        return f"--conv {self.settings} {self.problem}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class Option:
    field: str
    parse: Callable[[str], Any]
    help: str
    takes_list: bool = False
    survives_reset: bool = False


def one_of(*choices: str) -> Callable[[str], str]:
    """The choice that equals the word, whatever its case."""

    def parse(word: str) -> str:
        for choice in choices:
            if choice.lower() == word.lower():
                return choice
        raise InvalidArguments(f"must be one of {', '.join(choices)}")

    return parse


def _mode(word: str) -> str:
    return one_of("C", "P", "CP", "L")("CP" if word.upper() == "PC" else word)


def _number(smallest: int) -> Callable[[str], int]:
    def parse(word: str) -> int:
        if not (word.isascii() and word.isdecimal() and len(word) <= 10 and smallest <= int(word) <= LARGEST_NUMBER):
            raise InvalidArguments(f"must be a whole number from {smallest} to {LARGEST_NUMBER}")
        return int(word)

    return parse


def _tag(word: str) -> str:
    if not (word.isascii() and word.isalnum()):
        raise InvalidArguments("must be any, nchw, nhwc, nChw8c or another format tag")
    return {"abx": "abcd", "axb": "acdb"}.get(word, word)


def _peer(word: str) -> str:
    return one_of("onednn", "none")(word) if word != "none" else ""


def _post_ops(word: str) -> tuple[str, ...]:
    """`sum+relu` -> ("sum", "relu"); a parameter may only repeat the default, as in `sum:1` and `relu:0`."""
    known = {"sum": "sum", "sum:1": "sum", "relu": "relu", "relu:0": "relu", "eltwise_relu": "relu"}
    entries = word.split("+") if word else []
    for entry in entries:
        if entry not in known:
            raise InvalidArguments(f"has '{entry}'; implemented are sum and relu, joined by + and without parameters")
    return tuple(known[entry] for entry in entries)


OPTIONS: dict[str, Option] = {
    "mode": Option("mode", _mode, "C correctness (default), P performance, CP both, L list the problems only",
                   survives_reset=True),
    "dir": Option("dir", one_of("FWD_B", "FWD_D", "FWD_I"),
                  "FWD_B training with bias (default), FWD_D training, FWD_I inference, both without", takes_list=True),
    "dt": Option("dt", one_of("f32"), "data type: f32", takes_list=True),
    "stag": Option("stag", _tag, "layout of src: any (default), nchw, nhwc, nChw8c, nChw16c, abx, axb, ...",
                   takes_list=True),
    "wtag": Option("wtag", _tag, "layout of weights: any (default), oihw, hwio, ...", takes_list=True),
    "dtag": Option("dtag", _tag, "layout of dst, as --stag", takes_list=True),
    "attr-post-ops": Option("post_ops", _post_ops, "applied to the result in order: sum, relu, sum+relu, ...",
                            takes_list=True),
    "mb": Option("mb", _number(0), "images, instead of each problem's own (0, the default)", takes_list=True),
    "isa": Option("isa", str, "avx2, avx512_core, ...; default: the best that this machine has", survives_reset=True),
    "threads": Option("threads", _number(0), "default: the OpenMP thread count", survives_reset=True),
    "peer": Option("peer", _peer, "also run this library, in the same process", survives_reset=True),
    "max-ms-per-prb": Option("max_ms", _number(1), "time for the measurements of one problem (3000)",
                             survives_reset=True),
}  # fmt: skip
DEFAULTS = Settings()
_SYNONYMS = {"cfg": "dt"}  # benchdnn's word before version 3
_PLAIN_WORDS = ("--conv", "--reset", "--alg=direct", "--alg=auto")


class Reader:
    """Turns words into cases; `cases` and `json` (the last --json) are the result."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.json = ""
        self._values: dict[str, tuple[Any, ...]] = {f.name: (f.default,) for f in fields(Settings)}
        self._open_files: list[Path] = []

    def read(self, words: Sequence[str], directory: Path) -> None:
        """Take in `words` in order; batch files are looked up from `directory`.  Raises InvalidArguments."""
        for word in words:
            name, equals, value = word.removeprefix("--").partition("=")
            if word.lower() in _PLAIN_WORDS:
                if word == "--reset":
                    self._reset()
            elif not word.startswith("-"):
                self._add(parse_problem(word))
            elif word.startswith("--") and equals:
                self._set(name, value, directory)
            else:
                raise InvalidArguments(f"{word}: {_unknown(name)}")

    def _set(self, name: str, value: str, directory: Path) -> None:
        option = OPTIONS.get(_SYNONYMS.get(name, name))
        if name == "batch":
            self._batch(value, directory)
        elif name == "json":
            self.json = value
        elif option is None:
            raise InvalidArguments(f"--{name}={value}: {_unknown(name)}")
        else:
            entries = value.split(",") if option.takes_list else [value]
            try:
                self._values[option.field] = tuple(option.parse(entry) for entry in entries)
            except InvalidArguments as error:
                raise InvalidArguments(f"--{name}={value}: {error}") from None

    def _reset(self) -> None:
        for option in OPTIONS.values():
            if not option.survives_reset:
                self._values[option.field] = (getattr(DEFAULTS, option.field),)

    def _batch(self, name: str, directory: Path) -> None:
        path = batch_files.find(name, directory)
        if path in self._open_files:
            raise InvalidArguments(f"--batch={name}: the file includes itself")
        self._open_files.append(path)
        for line in batch_files.lines(path):
            try:
                self.read(line.words, path.parent)
            except InvalidArguments as error:
                raise InvalidArguments(f"{path.name}:{line.number}: {error}") from None
        self._open_files.pop()

    def _add(self, problem: ConvProblem) -> None:
        for combination in itertools.product(*self._values.values()):
            settings = Settings(**dict(zip(self._values, combination, strict=True)))
            applied = replace(problem, mb=settings.mb or problem.mb)
            self.cases.append(Case(replace(settings, mb=0), applied))


def _unknown(name: str) -> str:
    names = [*OPTIONS, "batch", "json"]
    if name in names:
        return f"an option is written --{name}=VALUE"
    if name == "alg":
        return "must be direct or auto"
    near = difflib.get_close_matches(name, names, 1)
    return f"no such option; {f'did you mean --{near[0]}=' if near else 'options are --' + ', --'.join(names)}"
