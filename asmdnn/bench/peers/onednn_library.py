"""Loading oneDNN 3.x: its C interface through cffi, the cap of its ISA, and its OpenMP thread count."""

import os
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from cffi import FFI

from asmdnn import environment
from asmdnn.bench.peers.onednn_interface import CDEF
from asmdnn.bench.peers.onednn_rnn_functions import RNN_CDEF
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented

STATUS = ("success", "out of memory", "invalid arguments", "unimplemented", "last implementation", "runtime error")
REFUSED = (2, 3)  # a combination that oneDNN does not define is an invalid argument
CPU_ENGINE, IN_ORDER = 1, 1
OPENMP_RUNTIME, SYCL_RUNTIME = 2, 512
OPENMP_LIBRARIES = ("libgomp.so.1", "libiomp5.so", "libomp.so.5")
MAX_CPU_ISA = {
    "avx2": 0x7,
    "avx2_vnni": 0xF,
    "avx512_core": 0x27,
    "avx512_core_vnni": 0x67,
    "avx512_core_bf16": 0xE7,
    "avx512_core_fp16": 0x1EF,
    "avx512_core_amx": 0xFEF,
}

ffi = FFI()
ffi.cdef(CDEF + RNN_CDEF)


class Onednn:
    """The loaded library.  `lib` are its functions, `engine` and `stream` its CPU, `version` its number as text."""

    def __init__(self, path: str, lib: Any) -> None:
        self.path = path
        self.lib = lib
        self._isa = ""
        self._openmp: Any = None
        number = lib.dnnl_version()
        if number.major != 3:
            raise AsmdnnError(f"{path} is oneDNN {number.major}.{number.minor}, bench needs version 3")
        self.version = f"{number.major}.{number.minor}.{number.patch}"
        self._tags: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._waits = number.cpu_runtime == SYCL_RUNTIME  # it returns from an execution before the work is done
        if number.cpu_runtime == OPENMP_RUNTIME:
            self._openmp = _loaded_openmp()
        self.engine = self.new(lib.dnnl_engine_create, CPU_ENGINE, 0)
        self.stream = self.new(lib.dnnl_stream_create, self.engine, IN_ORDER)

    def check(self, status: int, what: str) -> None:
        """Raise Unimplemented or AsmdnnError when `status` is not success."""
        if status:
            reason = STATUS[status] if status < len(STATUS) else f"status {status}"
            error = Unimplemented if status in REFUSED else AsmdnnError
            raise error(f"onednn: {what}: {reason}")

    def new(self, create: Any, *arguments: Any) -> Any:
        """The handle that a function which stores it through its first parameter creates."""
        handle = ffi.new("handle *")
        self.check(create(handle, *arguments), "creation")
        return handle[0]

    def cap_isa(self, name: str) -> None:
        """Restrict oneDNN to the instructions of `name`; the library takes this once, before its first primitive."""
        if self._isa == name:
            return
        if self._isa:
            raise InvalidArguments(
                f"--isa={name}: the peer onednn is already held to {self._isa}, which is final within a process; "
                "use one process for each ISA"
            )
        if name not in MAX_CPU_ISA:
            raise InvalidArguments(f"--isa={name}: the peer onednn can only be held to {', '.join(MAX_CPU_ISA)}")
        self.check(self.lib.dnnl_set_max_cpu_isa(MAX_CPU_ISA[name]), f"holding it to {name}")
        self._isa = name

    def tags(self) -> dict[str, int]:
        """The number of every format tag by its letters; they differ between versions."""
        if not self._tags:
            self._tags = _named(self.lib.dnnl_fmt_tag2str)
        return self._tags

    def data_type(self, name: str) -> int:
        """The number of a data type.  Raises Unimplemented for one that this version has not."""
        if not self._types:
            self._types = _named(self.lib.dnnl_dt2str)
        if name not in self._types:
            raise Unimplemented(f"onednn: version {self.version} has no type {name}")
        return self._types[name]

    def call(self, primitive: Any, arguments: Any) -> Callable[[], int]:
        """A function that runs a primitive, and comes back when its results are there."""
        start = partial(self.lib.dnnl_primitive_execute, primitive, self.stream, len(arguments), arguments)
        if not self._waits:
            return start

        def run() -> int:
            return start() or self.lib.dnnl_stream_wait(self.stream)  # type: ignore[no-any-return]

        return run

    def set_threads(self, number: int) -> None:
        """Threads of the next calls from this thread."""
        if self._openmp is not None:
            self._openmp.omp_set_num_threads(number)
        elif number != len(os.sched_getaffinity(0)):
            raise AsmdnnError(
                f"--threads={number}: {self.path} takes a thread for each CPU that this process may use; "
                "run it by taskset with as many, or use an OpenMP build, onednn-cpu-gomp"
            )


@lru_cache(maxsize=1)
def load() -> Onednn:
    """oneDNN from $ONEDNN_LIB, else from this Python environment, else from the system.

    Raises AsmdnnError that names the extra to install.
    """
    chosen = environment.path("ONEDNN_LIB")
    candidates = [str(chosen)] if chosen else [str(Path(sys.prefix, "lib", "libdnnl.so.3")), "libdnnl.so.3"]
    problem: object = None
    for path in candidates:
        try:
            return Onednn(path, ffi.dlopen(path))
        except (OSError, AttributeError) as error:
            problem = error
    raise AsmdnnError(
        f"--peer=onednn: no oneDNN 3 library ({str(problem).splitlines()[0]}); "
        "run pip install onednn-cpu-gomp==2023.2.0, or point ONEDNN_LIB at a libdnnl.so.3"
    )


def _named(name_of: Callable[[int], Any]) -> dict[str, int]:
    """The numbers of an enum by the names that the library has for them."""
    found: dict[str, int] = {}
    for number in count():
        name = ffi.string(name_of(number)).decode()
        if name.startswith("unknown"):
            return found
        found[name] = number
    raise AssertionError


def _loaded_openmp() -> Any:
    """The OpenMP runtime that came into the process with the library."""
    maps = Path("/proc/self/maps").read_text()
    for name in OPENMP_LIBRARIES:
        if name in maps:
            return ffi.dlopen(name)
    return None
