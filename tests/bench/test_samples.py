"""A seeded sample of every driver's problems in mode C: post-ops, second outputs, and every direction that is built."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.bench.case import prepare
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.drivers import driver_of
from asmdnn.bench.problem_text import Impossible
from asmdnn.bench.report import Record
from asmdnn.bench.vocabulary import DIRECTIONS
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.types import IsaName
from tests.conformance.kinds import KINDS, section
from tests.support.cases import read

SAMPLE, PAST_CACHES, SWEEP = 12, 6, 250
LEVELS = [pytest.param(level, marks=pytest.mark.isa(level)) for level in ("avx2", "avx512_core")]
FORWARD_ONLY = ("attr-post-ops", "attr-scales", "bia-dt")
CHAINS = (
    "", "relu", "sum:0.5", "linear:2:1+relu", "add:f32:per_oc", "mul:f32:per_tensor", "prelu:per_oc", "sum+relu",
    "tanh+sum:2", "sub:f32:common+clip:-1:2", "max:f32:per_tensor:axb", "add:f32:per_oc+sum:2:1+swish:1",
)  # fmt: skip


def directions(name: str) -> tuple[str, ...]:
    """Those that are built: a new one is in the sample at once."""
    option, found = driver_of(name).options.get("dir"), []
    for word in DIRECTIONS if option else ():
        try:
            option.parse(word)  # type: ignore[union-attr]  # there is one
        except (InvalidArguments, Unimplemented):
            continue
        found.append(word)
    return tuple(found)


def in_turn(seeded: random.Random, values: Sequence[str], count: int) -> list[str]:
    """Each value equally often, but for one, in any order."""
    shuffled = seeded.sample(values, len(values))
    return seeded.sample(list(itertools.islice(itertools.cycle(shuffled), count)), count)


def sample(name: str, count: int) -> Iterator[AnyCase]:
    """So many problems; of every option each value comes in turn, in a shuffled order of its own."""
    seeded = random.Random(name)
    words = section(name, "sample").split()
    problems = [word for word in words if not word.startswith("--")]
    given = (word.removeprefix("--").partition("=") for word in words if word.startswith("--"))
    options = {option: values.split(",") for option, _, values in given}
    listed: dict[str, Sequence[str]] = {"attr-post-ops": CHAINS} if "attr-post-ops" in driver_of(name).options else {}
    listed |= {"dir": directions(name)} if directions(name) else {}
    turns = {option: in_turn(seeded, values, count) for option, values in (listed | options).items()}
    for i in range(count):
        is_backward = turns.get("dir", [""] * count)[i].startswith("BWD")
        left = [option for option in turns if not (is_backward and option in FORWARD_ONLY)]
        chosen = [f"--{option}={turns[option][i]}" for option in left]
        yield from read(" ".join([f"--{name}", "--threads=2", *chosen, seeded.choice(problems)]))


def result(case: AnyCase, level: str) -> Record | None:
    """None where options do not go together."""
    try:
        (case,) = read(f"{str(case).partition(' ')[0]} --isa={level} {str(case).partition(' ')[2]}")
        return prepare(case)()
    except (Impossible, InvalidArguments):
        return None


def check(name: str, level: str, count: int) -> None:
    statuses, seen = Counter[str](), set()
    for case in sample(name, count):
        record = result(case, level)
        if record is None:
            continue
        assert record.status not in ("failed", "listed"), f"{record.args}: {record.reason}"
        statuses[record.status] += 1
        if record.status == "passed":
            seen.add(getattr(case.settings, "dir", ""))
    assert statuses["passed"] >= count // 2, statuses
    assert seen >= set(directions(name)) or count < SAMPLE


def streaming(part: Any) -> Any:
    """The tuning whose results go past the caches, however small they are."""
    changes: dict[str, Any] = {}
    for name in (field.name for field in fields(part)):
        if name.endswith("streaming_bytes"):
            changes[name] = 1
        elif is_dataclass(getattr(part, name)):
            changes[name] = streaming(getattr(part, name))
    return replace(part, **changes)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.one_in(2)
def test_a_sample_is_right(name: str, level: str) -> None:
    check(name, level, SAMPLE)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.one_in(3)
def test_a_sample_past_the_caches(name: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose stores end the process where they are not aligned."""
    made = dnn.Engine

    def engine(isa: IsaName = "", threads: int = 0) -> dnn.Engine:
        return made(isa=isa, threads=threads, tuning=streaming(made(isa=isa).tuning))

    monkeypatch.setattr("asmdnn.bench.case.dnn.Engine", engine)
    check(name, level, PAST_CACHES)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", KINDS)
def test_a_sweep_is_right(name: str, level: str) -> None:
    check(name, level, SWEEP)
