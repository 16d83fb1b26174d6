"""gemm of other libraries as calls to measure and compare with: MKL's, plain or packed, and the BLAS inside numpy."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.driver import Data
from asmdnn.bench.peers.mkl_library import ffi, load_mkl
from asmdnn.errors import AsmdnnError, Unimplemented

Floats = npt.NDArray[np.float32]

ROW_MAJOR, TRANS, PACKED = 101, {"N": 111, "T": 112}, 151  # CBLAS's numbers, and MKL's
IDENTIFIERS = {"a": 161, "b": 162}
OPENBLAS_SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")


def dense(dims: tuple[int, ...]) -> Floats:
    """Storage of this library's allocator, so that both sides have the same alignment and page sizes."""
    return dnn.Memory(dnn.MemoryDesc(dims, dnn.f32, "ab")).array.reshape(dims)


class PlainGemm:
    """Row-major operands, stored as "N" or "T" says, and the result."""

    def __init__(self, sizes: tuple[int, int, int], trans: dict[str, str]) -> None:
        self.m, self.n, self.k = m, n, k = sizes
        dims = {"a": (m, k), "b": (k, n)}
        self.trans = trans
        self.stored = {x: dense(dims[x] if trans[x] == "N" else dims[x][::-1]) for x in dims}
        self.c = dense((m, n))
        self.implementation = ""
        self.run: Callable[[], object]

    def write(self, data: Data) -> None:
        for x, storage in self.stored.items():
            storage[:] = data.arrays[x] if self.trans[x] == "N" else data.arrays[x].T
        self.c[:] = data.arrays["c"]

    def compute(self, data: Data) -> Floats:
        self.write(data)
        self.run()
        return self.c.copy()

    def close(self) -> None:
        """Nothing to free."""


class MklGemm(PlainGemm):
    """A PeerSide: cblas_sgemm, or cblas_sgemm_compute on the operands of `packed`, which `write` packs."""

    def __init__(
        self, sizes: tuple[int, int, int], trans: dict[str, str], packed: str, scales: tuple[float, float], threads: int
    ) -> None:
        super().__init__(sizes, trans)
        mkl, (self.alpha, beta) = load_mkl(), scales
        self._lib, self._threads = mkl.lib, threads
        self.implementation = "cblas_sgemm" + "_compute" * bool(packed)
        rooms = {x: mkl.lib.cblas_sgemm_pack_get_size(IDENTIFIERS[x], *sizes) for x in packed}
        self._rooms = {x: dense((1, -(-size // 4))) for x, size in rooms.items()}
        operands: list[Any] = []
        for x in "ab":
            array = self._rooms.get(x, self.stored[x])
            operands += [_pointer(array), self.stored[x].shape[1]]
        kinds = [PACKED if x in packed else TRANS[trans[x]] for x in "ab"]
        out = (beta, _pointer(self.c), self.n)
        if packed:
            self.run = partial(mkl.lib.cblas_sgemm_compute, ROW_MAJOR, *kinds, *sizes, *operands, *out)
        else:
            self.run = partial(mkl.lib.cblas_sgemm, ROW_MAJOR, *kinds, *sizes, self.alpha, *operands, *out)

    def write(self, data: Data) -> None:
        super().write(data)
        self._lib.MKL_Set_Num_Threads(self._threads)
        alpha = self.alpha
        for x, room in self._rooms.items():
            source, sizes = self.stored[x], (self.m, self.n, self.k)
            kind = (ROW_MAJOR, IDENTIFIERS[x], TRANS[self.trans[x]])
            self._lib.cblas_sgemm_pack(*kind, *sizes, alpha, _pointer(source), source.shape[1], _pointer(room))
            alpha = 1.0


class NumpyGemm(PlainGemm):
    """A PeerSide: numpy.matmul, which calls its BLAS; alpha is 1 and beta 0."""

    def __init__(
        self, sizes: tuple[int, int, int], trans: dict[str, str], packed: str, scales: tuple[float, float], threads: int
    ) -> None:
        if packed or scales != (1.0, 0.0):
            raise Unimplemented("numpy: matmul packs nothing, and has neither alpha nor beta")
        super().__init__(sizes, trans)
        self._set_threads, self._threads = _blas_threads(), threads
        self.implementation = "numpy.matmul"
        a, b = (self.stored[x] if trans[x] == "N" else self.stored[x].T for x in "ab")
        self.run = partial(np.matmul, a, b, out=self.c)

    def write(self, data: Data) -> None:
        super().write(data)
        self._set_threads(self._threads)


def _blas_threads() -> Callable[[int], object]:
    """The function that sets the thread count of numpy's OpenBLAS."""
    from cffi import FFI

    for line in Path("/proc/self/maps").read_text().splitlines():
        if "openblas" not in line:
            continue
        for name in OPENBLAS_SETTERS:
            openblas = FFI()
            openblas.cdef(f"void {name}(int);")
            try:
                setter: Callable[[int], object] = getattr(openblas.dlopen(line.split()[-1]), name)
            except (AttributeError, OSError):
                continue
            return setter
    raise AsmdnnError("--peer=numpy: the thread count of numpy's BLAS cannot be set, it is not OpenBLAS")


def _pointer(array: Floats) -> Any:
    return ffi.cast("float *", array.ctypes.data)
