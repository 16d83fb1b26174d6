"""What every test shares: a kernel cache of the run's own, and the ISA matrix.

`planned_isa` is every level that has kernels: planning, generation and proofs work for all of them everywhere.  `isa`
is the same, for tests that execute code: a level that this machine lacks is skipped, the run ends with a line that says
so, and ASMDNN_REQUIRE_ISA=avx2,avx512_core turns such a skip into a failure.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from asmdnn.isa.cpu import cpu_features, effective_isa
from asmdnn.isa.levels import isa_of

KERNEL_LEVELS = {"avx2": "AVX2", "avx512_core": "AVX-512"}
REQUIRED = "ASMDNN_REQUIRE_ISA"
PROPERTY = "isa"


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


def pytest_runtest_setup(item: pytest.Item) -> None:
    required = [name for name in os.environ.get(REQUIRED, "").split(",") if name]
    for marker in item.iter_markers("isa"):
        (name,) = marker.args
        item.user_properties.append((PROPERTY, name))
        reason = obstacle(name)
        if reason and name in required:
            pytest.fail(f"{REQUIRED} asks for {name}: {reason}", pytrace=False)
        if reason:
            pytest.skip(f"{name}: {reason}")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # behind what all others have to say
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    reports = [report for group in terminalreporter.stats.values() for report in group if hasattr(report, "when")]
    wanted = {name for report in reports for key, name in report.user_properties if key == PROPERTY}
    if not wanted:
        return
    executed = Counter(
        name for report in reports if report.when == "call" for key, name in report.user_properties if key == PROPERTY
    )
    ran = [f"{name} ({executed[name]} tests)" for name in KERNEL_LEVELS if executed[name]]
    missing = [f"{name} ({obstacle(name) or 'not selected'})" for name in KERNEL_LEVELS if not executed[name]]
    terminalreporter.write_line(
        f"ISA matrix: executed {', '.join(ran) or 'nothing'}; not executed: {', '.join(missing) or 'none'}"
    )
