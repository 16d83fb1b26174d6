"""The process's OpenMP runtime, called directly: `GOMP_parallel` runs a generated function on a team of threads.

libgomp and the LLVM and Intel runtimes all export `GOMP_parallel(fn, context, n, 0)`: the calling thread and n - 1
others each call `fn(context)`, and the call returns when all have.  Using the runtime that is already in the process
shares its sleeping threads with whoever brought it (torch, oneDNN), and OMP_NUM_THREADS and threadpoolctl govern it as
they govern the others.  Nothing is loaded at import.

Fork.  A fork()ed child has none of its parent's threads, but libgomp's bookkeeping says it has, so that the first
parallel region of the child never ends.  From the fork on everything there runs on the calling thread:
`threads_usable()` is False and `max_threads()` is 1.  Code that is about to call `GOMP_parallel` asks
`threads_usable()` every time, and otherwise does the whole team's work itself.
"""

import functools
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from asmdnn import environment
from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.jit.native import address, function, open_library
from asmdnn.records import dataclass
from asmdnn.runtime.quota import allowed_cpus

_RUNTIME = re.compile(r".*/lib(gomp|iomp5|omp)\b[^/]*\.so[^/]*")  # torch's wheel has libgomp-a34b3233.so.1
MAX_THREADS = 4096  # libgomp keeps a team on the caller's stack and overflows it with some ten thousands
_PF_FORKNOEXEC = 0x40  # linux/sched.h: forked, but no program executed since
_PROC = "/proc/self"

_usable: bool | None = None  # unknown until somebody asks; False for good in a fork()ed child


@dataclass(frozen=True, slots=True)
class OpenMP:
    """A loaded runtime: `parallel` for Python (a cffi function pointer, the GIL is released), addresses for kernels.

    `parallel(fn, context, n, 0)`: `void fn(void *context)` on at most n threads; fewer inside another parallel region,
    or if OMP_THREAD_LIMIT or OMP_DYNAMIC say so.  Therefore `fn` divides its work by what `omp_get_num_threads`
    returns, never by n.  `omp_get_thread_num` counts from 0, and `GOMP_barrier` returns when the whole team is there.
    """

    path: str
    parallel: Any
    get_max_threads: Any
    thread_num_address: int
    num_threads_address: int
    barrier_address: int


def openmp() -> OpenMP | None:
    """The runtime, loaded at the first call, None if the machine has none; ask `threads_usable()` before calling it."""
    threads_usable()  # first, because it looks at what was loaded before
    found = _search()
    return found if isinstance(found, OpenMP) else None


def threads_usable() -> bool:
    """Whether a parallel region may be started now: there is a runtime, and this is not a fork()ed child (30 ns)."""
    return _usable if _usable is not None else _decide()


def max_threads() -> int:
    """How many threads the calling thread's next parallel region gets by default; 1 if threads are not usable.

    What the OpenMP runtime says, at most MAX_THREADS, which is warned of.  Without OMP_NUM_THREADS no more than the CPU
    quota of the process's control group.
    """
    if not (_usable if _usable is not None else _decide()):  # every array function asks, so without another call
        return 1
    runtime = _search()
    count: int = runtime.get_max_threads() if type(runtime) is OpenMP else 1
    quota = _quota()
    if 0 < count <= quota:
        return count
    if count > MAX_THREADS:
        _warn_of_more(count)
    return max(1, min(count, quota))


def runtime_path() -> str | None:
    """The file of the runtime in use, None without one."""
    runtime = openmp()
    return runtime.path if runtime else None


def single_thread_reason() -> str | None:
    """Why everything runs on the calling thread, in one sentence; None if threads are usable."""
    if threads_usable():
        return None
    if openmp():
        return "This process was forked, and an OpenMP runtime does not survive fork: start it by spawn or forkserver."
    return f"There is no OpenMP runtime: {_search()}"


def check_thread_count(threads: int) -> int:
    """`threads` if so many can be asked for: InvalidArguments unless >= 1, Unimplemented if > 1 without a runtime.

    In a fork()ed child every count is accepted, because plans made for a team run there too, on one thread.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidArguments(f"threads must be an integer of at least 1, got {shown(threads)}.")
    if threads > MAX_THREADS:
        raise InvalidArguments(f"threads={shown(threads)} is more than a team can have, ask for at most {MAX_THREADS}.")
    if threads > 1 and openmp() is None:
        raise Unimplemented(f"threads={threads} needs an OpenMP runtime: {_search()}")
    return threads


@functools.cache
def _quota() -> int:
    """The most threads that nobody asked for; read once, because every array function asks."""
    return MAX_THREADS if environment.raw("OMP_NUM_THREADS") else allowed_cpus() or MAX_THREADS


@functools.cache
def _warn_of_more(count: int) -> None:
    """Once a process, that not all of these threads are taken."""
    message = f"OpenMP is set to {count} threads, a team can have {MAX_THREADS}, which are used"
    warnings.warn(f"{message}: set OMP_NUM_THREADS to fewer.", RuntimeWarning, stacklevel=4)


@functools.cache
def _search() -> OpenMP | str:
    """The first candidate that exports what is needed, or why there is none."""
    if not os.path.exists(f"{_PROC}/maps"):  # a plain chroot
        return "/proc, which tells a forked process, is not mounted: mount it, or use threads=1."
    tried = []
    for name in _candidates():
        try:
            return _load(name)
        except (OSError, AttributeError):
            tried.append(name)
    return f"none of {', '.join(tried)} can be loaded: run asmdnn setup, which gets libgomp, or use threads=1."


def _candidates() -> Iterator[str]:
    loaded = dict.fromkeys(path for _, _, path in _mapped_files() if _RUNTIME.fullmatch(path))
    yield from sorted(loaded, key=lambda path: "libgomp" not in path)
    for directory in ("", f"{sys.prefix}/lib/"):
        yield f"{directory}libgomp.so.1"
    for directory in ("", f"{sys.prefix}/lib/"):
        yield from (f"{directory}libomp.so.5", f"{directory}libiomp5.so")


def _load(name: str) -> OpenMP:
    library = open_library(name)
    parallel = function(library, "void (*)(void *, void *, unsigned, unsigned)", "GOMP_parallel")
    return OpenMP(
        path=_file_at(address(parallel)) or name,
        parallel=parallel,
        get_max_threads=function(library, "int (*)(void)", "omp_get_max_threads"),
        thread_num_address=address(function(library, "int (*)(void)", "omp_get_thread_num")),
        num_threads_address=address(function(library, "int (*)(void)", "omp_get_num_threads")),
        barrier_address=address(function(library, "void (*)(void)", "GOMP_barrier")),
    )


def _decide() -> bool:
    """Find out whether threads are usable, and from now on notice forks."""
    global _usable
    inherited = (
        os.path.exists(_PROC)
        and _forked_without_exec()
        and any(_RUNTIME.fullmatch(path) for _, _, path in _mapped_files())
    )
    # A child forked before asmdnn looked, with a runtime in place: the parent may have used it, so do not.
    if _usable is None:
        _usable = isinstance(_search(), OpenMP) and not inherited
        os.register_at_fork(after_in_child=_forbid_threads)
    return _usable


def _forbid_threads() -> None:
    global _usable
    _usable = False


def _forked_without_exec() -> bool:
    with open(f"{_PROC}/stat", encoding="latin-1") as file:
        fields = file.read().rpartition(")")[2].split()  # the program's name, in parentheses, may contain anything
    return bool(int(fields[6]) & _PF_FORKNOEXEC)


def _mapped_files() -> Iterator[tuple[int, int, str]]:
    """(start, end, path) of every file mapping of this process."""
    with open(f"{_PROC}/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/"):
                start, end = (int(part, 16) for part in fields[0].split("-"))
                yield start, end, fields[5]


def _file_at(where: int) -> str | None:
    return next((path for start, end, path in _mapped_files() if start <= where < end), None)
