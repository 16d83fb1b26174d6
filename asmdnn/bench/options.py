"""The words of `asmdnn bench`: drivers, options, batch files and problems, in benchdnn's grammar.

An option stays in force for the problems after it, also out of and into batch files.  Options marked * take a list,
`--dir=FWD_I,FWD_B`: every problem then runs once for each combination, and an empty entry is the default.  A driver's
word, such as --shuffle, holds for the problems after it; without one they are convolutions.  Names may be written with
_ for -.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from asmdnn.bench import batch_files, older
from asmdnn.bench.common import COMMON, RESET, SYNONYMS
from asmdnn.bench.driver import AnyCase, AnyDriver, Case
from asmdnn.bench.drivers import all_driver_names, driver_names, driver_of
from asmdnn.bench.problem_text import Impossible
from asmdnn.bench.vocabulary import NEUTRAL, NO_EFFECT, PROBLEM_OPTION
from asmdnn.bench.words import Option, Settings, Unbuilt
from asmdnn.errors import InvalidArguments, Unimplemented, resembling
from asmdnn.records import dataclass, fields

DEFAULT_DRIVER = "conv"
QUOTES = str.maketrans("", "", "\"'")
KEPT_READINGS = 4096
# Values of the options that --reset keeps, by field.
LASTING = {o.field: (getattr(Settings(), o.field),) for o in COMMON.values() if o.field not in RESET}
_VERBOSE = re.compile("-v([0-9]+)")


@dataclass(frozen=True, slots=True)
class Mistake:
    """What could not be read in a batch file, `where` as file:line; is_skipped: a problem after such a thing, or one
    that there is not."""

    where: str
    reason: str
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """A problem under all combinations of the values that the options have."""

    problem: Any
    combinations: int


class Reader:
    """Turns words into cases.

    read: all of them, into `cases`; for commands that need a plan of each, so that it raises InvalidArguments for the
    first mistake, and Unimplemented for what only oneDNN can do.  stream: one by one, with what is wrong in files.
    `json` is the last --json; `ranks` says whether there was --rank; `where` is the file and line that is read now, ""
    on the command line.  own: the command's own options, which it has taken out, but may have been meant.
    """

    def __init__(self, own: Callable[[], Sequence[str]] = tuple) -> None:
        self._own = own
        self.cases: list[AnyCase] = []
        self.json = ""
        self.ranks = False
        self.where = ""
        self.driver: AnyDriver = driver_of(DEFAULT_DRIVER)
        self._options: dict[str, Option] = {}
        self._defaults: dict[str, tuple[Any, ...]] = {}
        self._readings: dict[tuple[str, str], tuple[tuple[Any, ...], str]] = {}
        self._values: dict[str, tuple[Any, ...]] = {}
        self._unread: dict[str, str] = {}
        self._open_files: list[Path] = []
        self._prepare()

    def read(self, words: Sequence[str], directory: Path) -> None:
        """Take in `words` in order; batch files are looked up from `directory`."""
        for found in self.stream(words, directory):
            if isinstance(found, Mistake):
                raise InvalidArguments(f"{found.where}: {found.reason}")
            if found.settings.unbuilt:
                raise Unimplemented(str(found.settings.unbuilt[0]))
            self.cases.append(found)

    def stream(self, words: Sequence[str], directory: Path) -> Iterator[AnyCase | Mistake]:
        """The cases of `words`, in order.  Raises InvalidArguments for mistakes on the command line."""
        for step in self._steps(words, directory):
            if isinstance(step, CaseGroup):
                yield from self._cases_of(step.problem)
            else:
                yield step

    def count(self, words: Sequence[str], directory: Path) -> int:
        """How many cases and mistakes `stream` finds, but for --match; reads all, and makes no case."""
        steps = self._steps(words, directory)
        return sum(step.combinations if isinstance(step, CaseGroup) else 1 for step in steps)

    @property
    def shows_failures(self) -> bool:
        """What the last --summary says."""
        return bool(self._values["failures"][0])

    def _steps(self, words: Sequence[str], directory: Path) -> Iterator[CaseGroup | Mistake]:
        for word in words:
            try:
                if word.startswith("--batch="):
                    yield from self._batch(word.removeprefix("--batch="), directory)
                elif (problem := self._take(word)) is not None:
                    yield self._group(problem)
            except InvalidArguments as error:
                if not self.where:
                    raise
                yield Mistake(self.where, str(error), isinstance(error, Impossible))

    def _take(self, word: str) -> Any:
        """The problem that a word is; None if it is an option, which is in force now."""
        if not word.startswith("-"):
            return self._problem(word)
        name, equals, value = word.removeprefix("--").partition("=")
        if equals and name == PROBLEM_OPTION.get(self.driver.name):
            return self.driver.parse(value)
        if equals and word.startswith("--"):
            self._set(name, value)
        elif word.lower().removeprefix("--") in all_driver_names():
            self._switch(name.lower())
        elif word == "--reset":
            self._reset()
        elif word == "--rank":
            self.ranks = True
        elif match := _VERBOSE.fullmatch(word):
            self._set("verbose", match[1])
        else:
            raise InvalidArguments(f"{word}: {self._unknown(name)}")
        return None

    def _switch(self, name: str) -> None:
        if name != self.driver.name:
            self.driver = driver_of(name)
            self._prepare()

    def _prepare(self) -> None:
        """Take over the driver's options."""
        settings = self.driver.settings
        own = [f.name for f in fields(settings) if f.name not in LASTING and f.name != "unbuilt"]
        self._defaults = {name: (getattr(settings, name),) for name in own}
        self._options = {name.replace("_", "-"): option for name, option in self.driver.options.items()}
        self._readings = {}
        self._reset()

    def _set(self, name: str, value: str) -> None:
        plain = name.replace("_", "-")
        option = self._options.get(plain)
        if option is None:
            plain = SYNONYMS.get(plain, self.driver.synonyms.get(plain, plain))
            option = self._options.get(plain)
        if name == "json":
            self.json = value
        elif name == "attr":
            for attribute, text in older.attributes(value.translate(QUOTES)).items():
                self._set(attribute, text)
        elif option is not None:
            self._set_option(name, option, value.translate(QUOTES))
        elif plain in NO_EFFECT or self.driver.is_foreign:
            pass
        elif plain in NEUTRAL:
            entries = value.translate(QUOTES).split(",")
            self._values[f"--{plain}"] = tuple(self._neutral(plain, entry) for entry in entries)
        else:
            raise InvalidArguments(f"--{name}={value}: {self._unknown(name)}")

    def _set_option(self, name: str, option: Option, value: str) -> None:
        """What is wrong with an entry leaves the others in force; without any, problems are skipped from here on."""
        values, wrong = self._read(name, option, value)
        self._values[option.field] = values
        if self._unread:
            self._unread.pop(option.field, "")
        if not values:
            self._unread[option.field] = f"--{name}={value}, {self.where},"
        if wrong:
            raise InvalidArguments(wrong)

    def _read(self, name: str, option: Option, value: str) -> tuple[tuple[Any, ...], str]:
        """The values of an option's word, and what is wrong with it; kept, since files repeat their words."""
        if (name, value) in self._readings:
            return self._readings[name, value]
        found: list[Any] = []
        wrong = ""
        for entry in value.split(",") if option.takes_list else [value]:
            try:
                found.append(self._parse(option, entry.strip()))
            except Unimplemented as error:
                found.append(Unbuilt(f"--{name}={entry.strip()}", str(error)))
            except InvalidArguments as error:
                wrong = f"--{name}={value}: {error}"
        if len(self._readings) >= KEPT_READINGS:
            self._readings.clear()
        self._readings[name, value] = tuple(found), wrong
        return self._readings[name, value]

    def _parse(self, option: Option, entry: str) -> Any:
        return option.parse(entry) if entry or not option.takes_list else getattr(self.driver.settings, option.field)

    @staticmethod
    def _neutral(name: str, entry: str) -> Unbuilt | None:
        """None for a word that asks for nothing."""
        if not entry or re.fullmatch(NEUTRAL[name], entry):
            return None
        return Unbuilt(f"--{name}={entry}", "not built yet")

    def _reset(self) -> None:
        """Defaults, but for how problems are run."""
        self._values = {name: self._values.get(name, value) for name, value in LASTING.items()} | self._defaults
        self._unread = {field: text for field, text in self._unread.items() if field in LASTING}

    def _batch(self, name: str, directory: Path) -> Iterator[CaseGroup | Mistake]:
        path = batch_files.find(name, directory, self.driver.name)
        if path in self._open_files:
            raise InvalidArguments(f"--batch={name}: the file includes itself")
        outer = self.where
        self._open_files.append(path)
        for line in batch_files.lines(path):
            self.where = f"{path.name}:{line.number}"
            if line.mistake:
                yield Mistake(self.where, line.mistake)
            yield from self._steps(line.words, path.parent)
        self._open_files.pop()
        self.where = outer

    def _group(self, problem: Any) -> CaseGroup | Mistake:
        if self._unread:
            return Mistake(self.where, f"{problem}: {next(iter(self._unread.values()))} could not be read", True)
        return CaseGroup(problem, math.prod(map(len, self._values.values())))

    def _cases_of(self, problem: Any) -> Iterator[AnyCase]:
        match = self._values["match"][0]
        for settings in self._all_settings():
            case = Case(self.driver, *self.driver.completed(settings, problem))
            if not match or re.search(match, str(case)):
                yield case

    def _all_settings(self) -> Iterator[Settings]:
        """Of all combinations of values.  What is not built is a default, and named in `unbuilt`."""
        defaults, names = self.driver.settings, [name for name in self._values if name[0] != "-"]
        neutral = [values for name, values in self._values.items() if name[0] == "-"]
        for combination in itertools.product(*(self._values[name] for name in names), *neutral):
            values = dict(zip(names, combination, strict=False))
            unbuilt = tuple(value for value in combination if type(value) is Unbuilt)
            if unbuilt:
                values = {n: getattr(defaults, n) if type(v) is Unbuilt else v for n, v in values.items()}
            yield type(defaults)(**values, unbuilt=unbuilt)

    def _problem(self, word: str) -> Any:
        try:
            return self.driver.parse(word)
        except InvalidArguments as error:
            if word in driver_names():
                raise InvalidArguments(f"{word}: a driver is written --{word}") from None
            if word in batch_files.problem_sets():
                raise InvalidArguments(f"{word}: a problem set is written --batch={word}") from None
            if near := resembling(word, batch_files.problem_sets()):
                raise InvalidArguments(f"{error}{near}") from None
            raise

    def _unknown(self, name: str) -> str:
        names = [*self.driver.options, "batch", "json"]
        if name in names:
            return f"an option is written --{name}=VALUE"
        words = [*(f"--{name}=" for name in names), *(f"--{driver}" for driver in driver_names())]
        if near := resembling(f"--{name}", [*words, *self._own()]):
            return f"no such option{near}"
        return f"no such option; options are --{', --'.join(names)}"
