"""OpenMP found, shared, called and not called: each case in a process of its own, because a runtime loads once."""

import shutil
from pathlib import Path

import _cffi_backend
import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.runtime import threads
from tests.support.python import OF_OPENMP, python

ROOT = str(Path(__file__).parents[2])

# PUSH RBX; PUSH R12; SUB RSP, 8; MOV RBX, RDI; CALL [RBX] (thread_num); MOVSXD to R12; flags[R12] = 1; CALL [RBX + 8]
# (barrier); sums[R12] = flags[0] + flags[1]; return.  The context is [thread_num, barrier, -, flags 2, sums 2].
MEET = bytes.fromhex(
    "53 41 54 48 83 EC 08 48 89 FB FF 13 48 98 49 89 C4 4A C7 44 E3 18 01 00 00 00 FF 53 08"
    "48 8B 43 18 48 03 43 20 4A 89 44 E3 28 48 83 C4 08 41 5C 5B C3"
)

PRELUDE = f"""
import os
from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi, function, open_library
from asmdnn.runtime import threads

memory = ExecutableMemory([{MEET!r}])

def meet():
    omp = threads.openmp()
    context = ffi.new("int64_t[7]", [omp.thread_num_address, omp.barrier_address])
    omp.parallel(ffi.cast("void *", memory.addresses[0]), context, 2, 0)
    return list(context[3:7])

def outcome(action):
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def printed(script: str, **environment: str) -> str:
    """By a new process."""
    return python(PRELUDE + script, without=OF_OPENMP, **environment)


def libgomp() -> str:
    path = threads.runtime_path()
    if path is None or "libgomp" not in path:
        pytest.fail("these tests need libgomp.so.1: run asmdnn setup")
    return path


def test_a_team_meets_at_the_barrier() -> None:
    assert printed("print(meet())") == "[1, 1, 2, 2]"


def test_nothing_is_loaded_at_import() -> None:
    assert printed("print('libgomp' in open('/proc/self/maps').read())") == "False"


def test_the_team_has_the_size_that_openmp_says() -> None:
    script = """
omp = threads.openmp()
get_num = ffi.cast("int (*)(void)", omp.num_threads_address)
print(get_num(), threads.max_threads())
open_library(omp.path)
function(open_library(omp.path), "void (*)(int)", "omp_set_num_threads")(5)  # what threadpoolctl calls
print(threads.max_threads())
"""
    assert printed(script, OMP_NUM_THREADS="3").split() == ["1", "3", "5"]


def test_more_threads_than_a_team_can_have_are_bounded_with_one_warning() -> None:
    script = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print([threads.max_threads() for _ in range(3)] == 3 * [threads.MAX_THREADS])
for one in said:
    print(one.message)
"""
    words = "OpenMP is set to 100000 threads, a team can have 4096, which are used: set OMP_NUM_THREADS to fewer."
    for asked, said in (("4096", ""), ("100000", words)):
        assert printed(script, OMP_NUM_THREADS=asked).splitlines() == ["True", *said.splitlines()]


def test_a_runtime_in_the_process_is_shared(tmp_path: Path) -> None:
    copy = tmp_path / "libgomp-a34b3233.so.1"  # the name in a wheel
    shutil.copy(libgomp(), copy)
    script = f"""
open_library({str(copy)!r})
print(threads.runtime_path())
meet()
print(sorted({{line.split()[-1] for line in open("/proc/self/maps") if "gomp" in line}}))
"""
    assert printed(script).splitlines() == [str(copy), str([str(copy)])]


def test_a_library_that_only_looks_like_a_runtime_is_passed_over(tmp_path: Path) -> None:
    decoy = tmp_path / "libgomp-plugin-decoy.so.1"
    shutil.copy(_cffi_backend.__file__, decoy)  # some library that exports nothing of the kind
    script = f"""
original = threads._candidates
threads._candidates = lambda: iter([{str(decoy)!r}, "/nowhere/libgomp.so.1", *original()])
print(threads.runtime_path())
"""
    assert printed(script) == libgomp()


def test_without_a_runtime_one_thread_works_and_two_are_refused() -> None:
    script = """
from asmdnn.errors import Unimplemented
threads._candidates = lambda: iter(["libnone.so.1"])
print(threads.openmp(), threads.threads_usable(), threads.max_threads(), threads.runtime_path())
print(threads.single_thread_reason())
assert threads.check_thread_count(1) == 1
try:
    threads.check_thread_count(2)
except Unimplemented as error:
    print(error)
"""
    state, reason, error = printed(script).splitlines()
    assert state == "None False 1 None"
    for text in (reason, error):
        assert "libnone.so.1" in text
        assert "run asmdnn setup" in text
    assert error.startswith("threads=2 ")


@pytest.mark.parametrize("count", [0, -1, True, 2.0, "2", None])
def test_a_thread_count_that_makes_no_sense(count: object) -> None:
    with pytest.raises(InvalidArguments, match=r"^threads must be an integer"):
        threads.check_thread_count(count)  # type: ignore[arg-type]


def test_threads_are_usable_here() -> None:
    assert threads.threads_usable()
    assert threads.single_thread_reason() is None
    assert threads.check_thread_count(64) == 64


def test_a_child_forked_after_a_parallel_region_keeps_to_one_thread() -> None:
    script = """
def child():
    assert not threads.threads_usable()
    assert threads.max_threads() == 1
    assert "forked" in threads.single_thread_reason()
    assert threads.check_thread_count(2) == 2
    assert threads.openmp() is not None

def child_with_grandchild():
    child()
    assert outcome(child) == 0

meet()
print(outcome(child_with_grandchild), meet(), threads.threads_usable())
"""
    assert printed(script) == "0 [1, 1, 2, 2] True"


def test_a_child_forked_before_any_openmp_uses_threads() -> None:
    script = """
def child():
    assert threads.openmp() is not None  # loading it first must not look like having inherited it
    assert threads.threads_usable()
    assert meet() == [1, 1, 2, 2]

print(outcome(child), meet())
"""
    assert printed(script) == "0 [1, 1, 2, 2]"


def test_a_child_that_inherits_another_librarys_runtime_keeps_to_one_thread() -> None:
    script = f"""
gomp = open_library({libgomp()!r})
nothing = ExecutableMemory([bytes([0xC3])])
run = function(gomp, "void (*)(void *, void *, unsigned, unsigned)", "GOMP_parallel")
run(ffi.cast("void *", nothing.addresses[0]), ffi.NULL, 2, 0)

def child():
    assert not threads.threads_usable()
    assert "forked" in threads.single_thread_reason()

print(outcome(child), threads.threads_usable(), meet())
"""
    assert printed(script) == "0 True [1, 1, 2, 2]"


def test_without_proc_everything_runs_on_the_calling_thread() -> None:
    """As in a plain chroot: whether this process was forked cannot be told there."""
    script = """
threads._PROC = "/nowhere"
print(threads.threads_usable(), threads.max_threads(), threads.single_thread_reason())
"""
    said = "False 1 There is no OpenMP runtime: /proc, which tells a forked process, is not mounted: "
    assert printed(script).startswith(said)
