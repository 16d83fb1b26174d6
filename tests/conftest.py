"""What every test shares: a kernel cache of the run's own, and the ISA matrix.

`planned_isa` is every level that has plans: planning, generation and proofs work for all of them everywhere.  `isa`
is the same, for tests that execute code.  Its items, and all that are marked isa(name), run under a cap at their level,
also in threads and processes that they start, and an item fails whose primitives are of another level.  A level that
cannot be executed here is skipped, the run ends with a line that says so, and ASMDNN_REQUIRE_ISA=avx2,avx512_core turns
such a skip into a failure.  Tests that run a level's code on an emulated CPU are marked `emulated` instead: they run
everywhere, and are counted apart.

Slow tests are sampled: of the items of each, a run takes as many as --sweep says, slow(times=N) so many times that;
others with another --sweep-seed.  Of a test marked one_in(N) each Nth item always runs, and the others are slow.

With ASMDNN_MACHINE=skylake_sp, or make test HOST=skylake_sp, all defaults are those of that machine: of levels, caches
and threads.  A test that executes the default level is then skipped where the CPU at hand lacks it.
"""

import functools
import gc
import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn import environment
from asmdnn.isa.levels import isa_of
from asmdnn.isa.vectors import f32_level
from asmdnn.jit import packs
from asmdnn.ops.calls import ArrayCall
from asmdnn.planning.host import detected, effective_isa, executable_isas, host
from tests.support.drawing import sampled, start_anew
from tests.support.levels import kernel_level

PLANNED_LEVELS = {"avx2": "AVX2", "avx512_core": "AVX-512"}
TILE_LEVELS = {
    "avx2_vnni": "AVX-VNNI", "avx512_core_vnni": "AVX512_VNNI", "avx512_core_bf16": "AVX512_BF16",
    "avx512_core_fp16": "AVX512_FP16", "avx512_core_amx": "AMX",
}  # fmt: skip
KERNEL_LEVELS = PLANNED_LEVELS | TILE_LEVELS  # the latter have kernels for other types than f32
REQUIRED = environment.REQUIRE_ISA
REAL, EMULATED = "isa", "emulated"  # markers of the CPU that a test needs
RAN = "ran"  # the level of a primitive that a test has executed
REFUSED = f"cannot be executed here (as if on {host().name})"
MOST_THREADS = 8  # of a machine that is not at hand: more would only wait for one another
SWEEP = 100
FREEZE_EVERY = 500  # tests
Sweep = Callable[[Sequence[Any], int], list[Any]]
_begun = itertools.count(1)
_levels: set[tuple[str, str]] = set()  # of the primitives that the running test has executed, and of their engines


@pytest.fixture(autouse=True)
def _packs_of_one_test() -> Iterator[None]:
    """Packs serve a whole process: those that a test loads would give kernels and plans to the tests after it."""
    before = packs.loaded()
    yield
    packs._loaded[:] = before


@pytest.fixture(scope="session", autouse=True)
def _kernel_cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither reads nor writes the user's cache; processes that a test starts inherit it.

    The processes of a run share one, so that each kernel is generated once.
    """
    own = tmp_path_factory.getbasetemp()
    of_the_run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASMDNN_CACHE_DIR", str(of_the_run / "kernels"))
        patch.delenv("ASMDNN_CACHE", raising=False)
        yield


@pytest.fixture(scope="session", params=PLANNED_LEVELS)
def planned_isa(request: pytest.FixtureRequest) -> str:
    """A level to plan for, whatever this machine is."""
    return str(request.param)


@pytest.fixture(scope="session", params=[pytest.param(name, marks=pytest.mark.isa(name)) for name in PLANNED_LEVELS])
def isa(request: pytest.FixtureRequest) -> str:
    """A level that this machine executes."""
    return str(request.param)


def obstacle(name: str) -> str:
    """Why code of the level cannot run here, or ""."""
    if isa_of(name) in executable_isas():
        return ""
    if isa_of(name).features - detected().features:
        return f"no {KERNEL_LEVELS.get(name, name)} on this CPU"
    return f"capped at {effective_isa()}" if isa_of(name) in host().isas else f"{host().name} has none"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sweep", metavar="N", type=int, default=SWEEP, help=f"items of each slow test: {SWEEP}; 0: all")
    parser.addoption("--sweep-seed", metavar="SEED", default="0", help="which ones")
    parser.addoption("--benchdnn-inputs", metavar="DIR", help="oneDNN's tests/benchdnn/inputs, to run what can be run")


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Sweep:
    """For slow tests that go through many values themselves: a sample, so many times as large as one of items."""
    count, seed = (request.config.getoption(name) for name in ("--sweep", "--sweep-seed"))
    return lambda values, times: sampled(values, times * count, f"{seed} {request.node.nodeid}")


@pytest.hookimpl(tryfirst=True)  # before marks choose items
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each Nth item of some tests, and a sample of the items of each slow one."""
    seen: Counter[str] = Counter()
    for item in items:
        if marker := item.get_closest_marker("one_in"):
            name = item.nodeid.partition("[")[0]
            if seen[name] % marker.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[name] += 1
    count, seed = config.getoption("--sweep"), config.getoption("--sweep-seed")
    slow = defaultdict(list)
    for item in items:
        if marker := item.get_closest_marker("slow"):
            slow[item.nodeid.partition("[")[0], marker.kwargs.get("times", 1)].append(item)
    kept = {x for (name, times), found in slow.items() for x in sampled(found, times * count, f"{seed} {name}")}
    left_out = [item for found in slow.values() for item in found if item not in kept]
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there now stays: collections, also those of tests that ask for one, need not walk through it."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are known: collections would walk through them again and again, and find nothing
    config.addinivalue_line("markers", f"{EMULATED}(name): executes code of this ISA level on an emulated CPU")
    os.environ.setdefault(environment.TUNED, "no")  # what was tuned here is no matter of the tests
    if host() is not detected():  # before anybody loads an OpenMP runtime
        os.environ.setdefault("OMP_NUM_THREADS", str(min(host().cores, MOST_THREADS)))
    for owner, name in ((dnn.Primitive, "bind"), (dnn.Primitive, "execute"), (ArrayCall, "run")):
        setattr(owner, name, _noting_its_level(getattr(owner, name)))


def _noting_its_level(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def note(self: dnn.Primitive | ArrayCall, *arguments: Any, **named: Any) -> Any:
        primitive = self._primitive if isinstance(self, ArrayCall) else self
        asked_for, used = f32_level(primitive.pd.engine.isa), kernel_level(primitive.pd.plan)
        level = max(asked_for, used or asked_for, key=lambda name: isa_of(name).rank)  # rows may be narrower
        _levels.add((level, primitive.pd.engine.isa))
        return method(self, *arguments, **named)

    return note


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The cap of an item, around its fixtures too."""
    with pytest.MonkeyPatch.context() as patch:
        for marker in item.iter_markers(REAL):
            if not obstacle(marker.args[0]):
                patch.setenv(environment.MAX_CPU_ISA, marker.args[0])
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    start_anew(item.nodeid)
    if next(_begun) % FREEZE_EVERY == 0:  # what caches hold by now stays, too
        gc.collect()
        gc.freeze()
    item.user_properties += [(EMULATED, marker.args[0]) for marker in item.iter_markers(EMULATED)]
    required = [name for name in os.environ.get(REQUIRED, "").split(",") if name]
    for marker in item.iter_markers(REAL):
        (name,) = marker.args
        reason = obstacle(name)
        if reason and name in required:
            pytest.fail(f"{REQUIRED} asks for {name}: {reason}", pytrace=False)
        if reason:
            pytest.skip(f"{name}: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Notes the levels of what ran: of primitives, else, of kernels that a test calls itself, the level it is for."""
    _levels.clear()
    result = yield
    wanted = {marker.args[0] for marker in item.iter_markers(REAL)}
    ran = {next((name for name in pair if name in wanted), pair[0]) for pair in _levels}
    item.user_properties += [(RAN, name) for name in ran or wanted]
    if wanted and ran - wanted:
        pytest.fail(f"executes {', '.join(ran - wanted)}, but is for {', '.join(wanted)}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """On a machine that is not at hand, a test that fails since its level cannot be executed counts as skipped."""
    report = yield
    if report.failed and REFUSED in report.longreprtext:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: {effective_isa()} {REFUSED}")
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)  # after what all others have to say
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    reports = [report for group in terminalreporter.stats.values() for report in group]
    marks = [(r.when, mark) for r in reports if isinstance(r, pytest.TestReport) for mark in r.user_properties]
    if not any(kind in (RAN, EMULATED) for _, (kind, _) in marks):
        return
    executed = Counter(mark for when, mark in marks if when == "call")
    where = {RAN: "", EMULATED: " under emulation"}
    ran = [
        f"{name}{where[kind]} ({executed[kind, name]} tests)"
        for kind in where
        for name in KERNEL_LEVELS
        if executed[kind, name]
    ]
    missing = [f"{name} ({obstacle(name) or 'not selected'})" for name in KERNEL_LEVELS if not executed[RAN, name]]
    on = "" if host() is detected() else f", as if on {host().name}"
    terminalreporter.write_line(
        f"ISA matrix{on}: executed {', '.join(ran) or 'nothing'}; not executed on a CPU: {', '.join(missing) or 'none'}"
    )
