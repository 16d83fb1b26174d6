"""Every public callable, with junk in the place of every argument: it works, or raises one of the library's errors.

The message has a bounded length, whatever was passed.  BufferError is documented where arrays cannot say a format.
A warning is a failure, too: numpy's about a cast says nothing of the argument that was wrong.

Callables, and parameters of each, are found in the package and in signatures.  They were lists here once, so that
modules (asmdnn.recurrent) and parameters with a default (Attr's denormals) were left out, and warnings were ignored.
"""

import random
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asmdnn.errors import shown
from tests.processes import junk
from tests.processes.junk import Arguments, Call
from tests.processes.junk_entries import entries
from tests.processes.public import public_callables, public_methods

GROUPS = 8  # of entries: a test each
SHARE = 8  # of junk: each parameter meets one in so many, and all of it in the sweep
CALLS, SAMPLED = 20_000, 2_000  # random ones, with junk for one argument or more
FURTHER_BYTES = 8 << 30  # of address space; these tests take 0.4 GiB of it
SHARE_OF_VALID = 0.3  # of what replaces an argument: a valid value of some other parameter


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Call]:
    return entries(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module", autouse=True)
def _memory() -> Iterator[None]:
    """A limit, so that what asks for all of it fails at once.

    Beyond what is mapped: other tests of the process may have left threads, and libraries with arenas of their own.
    """
    limits = resource.getrlimit(resource.RLIMIT_AS)
    mapped_pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = mapped_pages * resource.getpagesize() + FURTHER_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files are written, under any name."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("every", [SHARE, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("group", range(GROUPS))
def test_junk(group: int, every: int, calls: dict[str, Call]) -> None:
    found = []
    for at, name in enumerate(list(calls)[group::GROUPS]):
        call, valid = calls[name]
        call(**valid())
        found += [f"{name} {each}" for each in junk.failures(call, valid, every, at)]
    assert found == []


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("seed", "count"), [(0, SAMPLED), *(pytest.param(seed, CALLS, marks=pytest.mark.slow) for seed in range(1, 4))]
)
def test_junk_for_several_arguments(seed: int, count: int, calls: dict[str, Call]) -> None:
    """Of random callables, with junk and with what is valid elsewhere; also of those that have no entry yet."""
    known = {**{name: (call, Arguments) for name, call in public_callables().items()}, **calls}
    elsewhere = [value for _, valid in calls.values() for value in valid().values()]
    found, draw = [], random.Random(seed)
    for _ in range(count):
        name = draw.choice(list(known))
        call, valid = known[name]
        arguments, said = several(call, valid(), elsewhere, draw)
        if failure := junk.failure(call, arguments):
            found.append(f"{name}({', '.join(said)}): {failure}")
    assert found == []


def several(
    call: Callable[..., Any], valid: Arguments, elsewhere: list[Any], draw: random.Random
) -> tuple[Arguments, list[str]]:
    """Arguments, one to three of them junk, and so are those that are needed and not known; and which they are."""
    all_names = junk.parameters(call, valid)
    needed = [name for name in junk.needed(call) if name not in valid]
    chosen = dict.fromkeys([*needed, *draw.sample(all_names, min(len(all_names), draw.randint(1, 3)))])
    arguments, said = dict(valid), []
    for name in chosen:
        if draw.random() < SHARE_OF_VALID:
            arguments[name] = draw.choice(elsewhere)
            said.append(f"{name}={type(arguments[name]).__name__} {shown(arguments[name])}")
        else:
            which = draw.choice(list(junk.JUNK))
            arguments[name] = junk.fresh(which)
            said.append(f"{name}={which}")
    return arguments, said


def test_every_public_callable_has_an_entry(calls: dict[str, Call]) -> None:
    assert set(public_callables()) - set(calls) == set()


def test_every_public_method_has_an_entry(calls: dict[str, Call]) -> None:
    assert set(public_methods()) - set(calls) == set()
