"""The words of `asmdnn bench`: drivers, options, batch files and problems, in benchdnn's grammar.

An option stays in force for the problems after it, also out of and into batch files.  Options marked * take a list,
`--dir=FWD_I,FWD_B`: every problem then runs once for each combination.  A driver's word, such as --shuffle, holds for
the problems after it; without one they are convolutions.
"""

import difflib
import itertools
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from asmdnn.bench import batch_files
from asmdnn.bench.driver import AnyCase, AnyDriver, Case
from asmdnn.bench.drivers import driver_names, driver_of
from asmdnn.bench.words import COMMON
from asmdnn.errors import InvalidArguments

DEFAULT_DRIVER = "conv"


class Reader:
    """Turns words into cases; `cases` and `json` (the last --json) are the result."""

    def __init__(self) -> None:
        self.cases: list[AnyCase] = []
        self.json = ""
        self.driver: AnyDriver = driver_of(DEFAULT_DRIVER)
        self._values: dict[str, tuple[Any, ...]] = {}
        self._open_files: list[Path] = []
        self._reset()

    def read(self, words: Sequence[str], directory: Path) -> None:
        """Take in `words` in order; batch files are looked up from `directory`.  Raises InvalidArguments."""
        for word in words:
            name, equals, value = word.removeprefix("--").partition("=")
            if word.lower() in [f"--{driver}" for driver in driver_names()]:
                self._switch(name.lower())
            elif word == "--reset":
                self._reset()
            elif not word.startswith("-"):
                self._add(self._problem(word))
            elif word.startswith("--") and equals:
                self._set(name, value, directory)
            else:
                raise InvalidArguments(f"{word}: {self._unknown(name)}")

    def _switch(self, name: str) -> None:
        if name != self.driver.name:
            self.driver = driver_of(name)
            self._reset()

    def _set(self, name: str, value: str, directory: Path) -> None:
        option = self.driver.options.get(self.driver.synonyms.get(name, name))
        if name == "batch":
            self._batch(value, directory)
        elif name == "json":
            self.json = value
        elif option is None:
            raise InvalidArguments(f"--{name}={value}: {self._unknown(name)}")
        else:
            entries = value.split(",") if option.takes_list else [value]
            try:
                self._values[option.field] = tuple(option.parse(entry) for entry in entries)
            except InvalidArguments as error:
                raise InvalidArguments(f"--{name}={value}: {error}") from None

    def _reset(self) -> None:
        """Defaults, but for how problems are run."""
        kept = {option.field for option in COMMON.values()} & self._values.keys()
        defaults = {f.name: (getattr(self.driver.settings, f.name),) for f in fields(self.driver.settings)}
        self._values = defaults | {name: self._values[name] for name in kept}

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

    def _add(self, problem: Any) -> None:
        for combination in itertools.product(*self._values.values()):
            settings = replace(self.driver.settings, **dict(zip(self._values, combination, strict=True)))
            self.cases.append(Case(self.driver, *self.driver.completed(settings, problem)))

    def _problem(self, word: str) -> Any:
        try:
            return self.driver.parse(word)
        except InvalidArguments:
            if word in driver_names():
                raise InvalidArguments(f"{word}: a driver is written --{word}") from None
            if word in batch_files.problem_sets():
                raise InvalidArguments(f"{word}: a problem set is written --batch={word}") from None
            raise

    def _unknown(self, name: str) -> str:
        names = [*self.driver.options, "batch", "json"]
        if name in names:
            return f"an option is written --{name}=VALUE"
        words = {name: f"--{name}=" for name in names} | {driver: f"--{driver}" for driver in driver_names()}
        near = difflib.get_close_matches(name, words, 1)
        if near:
            return f"no such option; did you mean {words[near[0]]}"
        return f"no such option; options are --{', --'.join(names)}"
