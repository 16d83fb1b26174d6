"""What every test shares: a kernel cache of the run's own, and the ISA matrix.

`planned_isa` is every level that has kernels: planning, generation and proofs work for all of them everywhere.  `isa`
is the same, for tests that execute code: a level that this machine lacks is skipped, the run ends with a line that says
so, and ASMDNN_REQUIRE_ISA=avx2,avx512_core turns such a skip into a failure.  Tests that run a level's code on an
emulated CPU are marked `emulated` instead: they run everywhere, and are counted apart.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from asmdnn.isa.cpu import cpu_features, effective_isa
from asmdnn.isa.levels import isa_of

KERNEL_LEVELS = {"avx2": "AVX2", "avx512_core": "AVX-512"}
REQUIRED = "ASMDNN_REQUIRE_ISA"
REAL, EMULATED = "isa", "emulated"  # markers of the CPU that a test needs


@pytest.fixture(scope="session", autouse=True)
def _kernel_cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither reads nor writes the user's cache; processes that a test starts inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASMDNN_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        patch.delenv("ASMDNN_CACHE", raising=False)
        yield


@pytest.fixture(scope="session", params=KERNEL_LEVELS)
def planned_isa(request: pytest.FixtureRequest) -> str:
    """A level to plan for, whatever this machine is."""
    return str(request.param)


@pytest.fixture(scope="session", params=[pytest.param(name, marks=pytest.mark.isa(name)) for name in KERNEL_LEVELS])
def isa(request: pytest.FixtureRequest) -> str:
    """A level that this machine executes."""
    return str(request.param)


def obstacle(name: str) -> str:
    """Why code of the level cannot run here, or ""."""
    level = isa_of(name)
    if level.features - cpu_features():
        return f"no {KERNEL_LEVELS.get(name, name)} on this CPU"
    return f"capped at {effective_isa()}" if level.rank > effective_isa().rank else ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--benchdnn-inputs", metavar="DIR", help="oneDNN's tests/benchdnn/inputs, to run what can be run")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{EMULATED}(name): executes code of this ISA level on an emulated CPU")


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.user_properties += [(EMULATED, marker.args[0]) for marker in item.iter_markers(EMULATED)]
    required = [name for name in os.environ.get(REQUIRED, "").split(",") if name]
    for marker in item.iter_markers(REAL):
        (name,) = marker.args
        item.user_properties.append((REAL, name))
        reason = obstacle(name)
        if reason and name in required:
            pytest.fail(f"{REQUIRED} asks for {name}: {reason}", pytrace=False)
        if reason:
            pytest.skip(f"{name}: {reason}")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # behind what all others have to say
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    reports = [report for group in terminalreporter.stats.values() for report in group]
    marks = [(r.when, mark) for r in reports if isinstance(r, pytest.TestReport) for mark in r.user_properties]
    if not any(kind in (REAL, EMULATED) for _, (kind, _) in marks):
        return
    executed = Counter(mark for when, mark in marks if when == "call")
    where = {REAL: "", EMULATED: " under emulation"}
    ran = [
        f"{name}{where[kind]} ({executed[kind, name]} tests)"
        for kind in where
        for name in KERNEL_LEVELS
        if executed[kind, name]
    ]
    missing = [f"{name} ({obstacle(name) or 'not selected'})" for name in KERNEL_LEVELS if not executed[REAL, name]]
    terminalreporter.write_line(
        f"ISA matrix: executed {', '.join(ran) or 'nothing'}; not executed on a CPU: {', '.join(missing) or 'none'}"
    )
