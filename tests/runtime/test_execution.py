"""From a plan to a native call: kernel caches of every state, forks, and threads that generate at once."""

import stat
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import asmdnn as dnn
from asmdnn.jit.kernels import KernelCache
from asmdnn.jit.pruning import SUFFIX
from asmdnn.runtime.execution import programs
from asmdnn.runtime.kernels import kernel_cache
from tests.primitives.conv_case import case_of, proven
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.conv_run import check_results, run
from tests.primitives.tensors import assert_within
from tests.support.python import python

ROOT = str(Path(__file__).parents[2])
CASES = [
    case_of("mb2ic17ih9oc33oh9kh3ph1 any any bias relu"),
    case_of("mb1ic33ih9oc17oh9kh3ph1 nchw nchw - sum"),
    case_of("mb1ic3ih17oc16oh9kh7sh2ph3 nchw nhwc bias -"),
]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], KernelCache]]:
    """A function that forgets the kernels in memory; those on disk are the test's own, in `tmp_path / "kernels"`."""
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "kernels"))

    def forget() -> KernelCache:
        kernel_cache.cache_clear()
        programs.clear()
        return kernel_cache()

    forget()
    yield forget
    kernel_cache.cache_clear()
    programs.clear()


def files(directory: Path) -> list[Path]:
    return sorted((directory / "kernels").glob(f"*{SUFFIX}"))


def test_memory_then_disk(isa: str, fresh: Callable[[], KernelCache], tmp_path: Path) -> None:
    pd = proven(CASES[0], isa)
    kernels = len(set(pd.plan.specs)) + 1  # and the executor
    cache = fresh()
    primitive = dnn.Primitive(pd)
    check_results(primitive, CASES[0])
    assert (cache.counts.generated, cache.counts.disk_hits) == (kernels, 0)
    assert len(files(tmp_path)) == kernels
    assert stat.S_IMODE((tmp_path / "kernels").stat().st_mode) == 0o700
    programs.clear()  # an equal primitive would share the program
    dnn.Primitive(pd)
    assert (cache.counts.generated, cache.counts.memory_hits) == (kernels, kernels)
    cache = fresh()
    check_results(dnn.Primitive(pd), CASES[0])
    assert (cache.counts.generated, cache.counts.disk_hits) == (0, kernels)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "flipped bit": lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:],
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "foreign": lambda data: b"\x7fELF" + data[4:],
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_regenerated(isa: str, fresh: Callable[[], KernelCache], tmp_path: Path, damage: str) -> None:
    primitive = dnn.Primitive(proven(CASES[0], isa))
    wanted = run(primitive, make_data(CASES[0], integers=False)).tobytes()
    intact = {path: path.read_bytes() for path in files(tmp_path)}
    for path, data in intact.items():
        path.write_bytes(DAMAGE[damage](data))
    cache = fresh()
    again = dnn.Primitive(proven(CASES[0], isa))
    assert cache.counts.generated == len(intact)
    assert run(again, make_data(CASES[0], integers=False)).tobytes() == wanted
    assert {path: path.read_bytes() for path in files(tmp_path)} == intact, "repaired, and generated reproducibly"


def test_kernels_exchanged_between_files(isa: str, fresh: Callable[[], KernelCache], tmp_path: Path) -> None:
    """Intact files under each other's names."""
    primitive = dnn.Primitive(proven(CASES[0], isa))
    wanted = run(primitive, make_data(CASES[0], integers=False)).tobytes()
    paths = files(tmp_path)
    contents = [path.read_bytes() for path in paths]
    for path, data in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(data)
    fresh()
    again = dnn.Primitive(proven(CASES[0], isa))
    assert run(again, make_data(CASES[0], integers=False)).tobytes() == wanted


def test_an_unusable_directory_costs_one_warning(
    isa: str, fresh: Callable[[], KernelCache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "file" / "kernels"))  # fails for root too
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fresh()
        for case in CASES:
            check_results(dnn.Primitive(proven(case, isa)), case)
    messages = [str(warning.message) for warning in caught if str(tmp_path) in str(warning.message)]
    assert len(messages) == 1, messages
    assert "ASMDNN_CACHE" in messages[0]


def test_without_a_disk_cache(
    isa: str, fresh: Callable[[], KernelCache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASMDNN_CACHE", "0")
    fresh()
    check_results(dnn.Primitive(proven(CASES[0], isa)), CASES[0])
    assert not (tmp_path / "kernels").exists()


def test_threads_generate_and_execute_at_once(isa: str, fresh: Callable[[], KernelCache]) -> None:
    """Some make the same primitive, some another one, all from nothing."""
    fresh()
    jobs = [CASES[0], CASES[0], CASES[1], CASES[2]]
    pds = [proven(case, isa, threads=2) for case in jobs]
    start = Barrier(len(jobs))

    def work(number: int) -> None:
        case = jobs[number]
        data = make_data(case, integers=True, seed=number)
        start.wait(timeout=60)
        primitive = dnn.Primitive(pds[number])
        for _ in range(5):
            assert_within(run(primitive, data), expected(case, data), 0.0)

    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(work, range(len(jobs)), timeout=120))


FORK = """
import os, signal, sys
import asmdnn as dnn
from tests.primitives.conv_case import proven
from tests.primitives.conv_reference import make_data
from tests.primitives.conv_run import memories_of, run
from tests.runtime.test_execution import CASES

isa, = sys.argv[1:]
old, new = CASES[0], CASES[1]
data = make_data(old, False)
primitive = dnn.Primitive(proven(old, isa, 2))
assert primitive.pd.plan.parts(primitive.pd.threads) == 2
memories = memories_of(primitive.pd, data)
bound = primitive.bind(**memories)
bound()                                   # threads of the team now exist, and the child will not have them
wanted = memories["dst"].array.tobytes()
wanted_new = run(dnn.Primitive(proven(new, isa, 1)), make_data(new, False)).tobytes()

def work():
    memories["dst"].array[:] = 7
    bound()                               # bound before the fork
    assert memories["dst"].array.tobytes() == wanted
    assert run(primitive, data).tobytes() == run(primitive, data).tobytes()
    made = dnn.Primitive(proven(new, isa, 2))     # made after it, for a team
    assert run(made, make_data(new, False)).tobytes() == wanted_new
    made = dnn.Primitive(proven(CASES[2], isa, 2))  # and never generated by the parent
    run(made, make_data(CASES[2], False))
    assert dnn.Engine().threads == 1

def child(action):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)                  # a hang ends as SIGALRM
        try:
            action()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

codes = [child(work), child(work)]
bound()                                   # the parent's team is as it was
assert memories["dst"].array.tobytes() == wanted
print(codes)
"""


def test_a_forked_child_computes_the_same(isa: str) -> None:
    assert python(FORK, isa, OMP_NUM_THREADS="2") == "[0, 0]"


PROCESS = """
import sys
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.runtime.execution import programs
from tests.runtime.test_execution import CASES
from tests.primitives.conv_case import proven
from tests.primitives.conv_run import check_results
import asmdnn as dnn
for case in CASES:
    check_results(dnn.Primitive(proven(case, sys.argv[1])), case)
print(kernel_cache().counts.generated, "peachpy" in sys.modules)
"""


def test_a_new_process_with_a_warm_cache_generates_nothing(isa: str, tmp_path: Path) -> None:
    generated, loaded = python(PROCESS, isa, ASMDNN_CACHE_DIR=str(tmp_path / "kernels")).split()
    assert int(generated) > 10
    assert loaded == "True"
    assert python(PROCESS, isa, ASMDNN_CACHE_DIR=str(tmp_path / "kernels")) == "0 False"


NO_PEACHPY = """
import sys
from importlib.machinery import PathFinder

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.split(".")[0] == "peachpy" else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
"""


def test_without_peachpy_a_warm_cache_is_enough(isa: str, tmp_path: Path) -> None:
    python(PROCESS, isa, ASMDNN_CACHE_DIR=str(tmp_path / "kernels"))
    assert python(NO_PEACHPY + PROCESS, isa, ASMDNN_CACHE_DIR=str(tmp_path / "kernels")) == "0 False"


REFUSED = """
import asmdnn as dnn
from tests.primitives.conv_case import proven
from tests.runtime.test_execution import CASES
pd = proven(CASES[0], sys.argv[1])
try:
    dnn.Primitive(pd)
except dnn.Unimplemented as error:
    print(error)
"""


def test_without_peachpy_and_without_cache_the_error_says_how_to_get_it(isa: str, tmp_path: Path) -> None:
    said = python(NO_PEACHPY + REFUSED, isa, ASMDNN_CACHE_DIR=str(tmp_path / "kernels"))
    assert said.startswith("PeachPy is not installed")
