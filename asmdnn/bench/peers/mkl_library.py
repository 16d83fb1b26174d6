"""Loading Intel's MKL: its packed gemm through cffi, the cap of its ISA, and its thread count."""

import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from cffi import FFI

from asmdnn import environment
from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.isa.vectors import f32_level

CDEF = """
int MKL_Set_Threading_Layer(int code);
int MKL_Enable_Instructions(int isa);
void MKL_Set_Num_Threads(int count);
void MKL_Get_Version_String(char *text, int length);
size_t cblas_sgemm_pack_get_size(int identifier, int m, int n, int k);
void cblas_sgemm_pack(int layout, int identifier, int trans, int m, int n, int k, float alpha, const float *src,
    int ld, float *dest);
void cblas_sgemm_compute(int layout, int transa, int transb, int m, int n, int k, const float *a, int lda,
    const float *b, int ldb, float beta, float *c, int ldc);
void cblas_sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda,
    const float *b, int ldb, float beta, float *c, int ldc);
"""
GNU_THREADING = 3  # the OpenMP runtime that asmdnn uses: two pools that spin would slow each other down
INSTRUCTIONS = {"avx2": 2, "avx512_core": 4}  # the peer computes in f32, to which the levels above add nothing
VERSION_LENGTH = 200

ffi = FFI()
ffi.cdef(CDEF)


class Mkl:
    """The loaded library; `lib` are its functions."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self._isa = ""
        lib.MKL_Set_Threading_Layer(GNU_THREADING)

    def cap_isa(self, name: str) -> None:
        """Allow instructions up to `name`; MKL takes this once.  What it uses of them on this CPU is its choice."""
        level = f32_level(name)
        if self._isa and self._isa != level:
            raise InvalidArguments(
                f"--isa={name}: the peer mkl is already held to {self._isa}, which is final within a process; "
                "use one process for each ISA"
            )
        if not self._isa:
            self.lib.MKL_Enable_Instructions(INSTRUCTIONS[level])
        self._isa = level

    @property
    def version(self) -> str:
        text = ffi.new("char[]", VERSION_LENGTH)
        self.lib.MKL_Get_Version_String(text, VERSION_LENGTH)
        return str(ffi.string(text).decode().strip())


@lru_cache(maxsize=1)
def load_mkl() -> Mkl:
    """MKL from $MKL_LIB, else from this Python environment.  Raises AsmdnnError that names the extra to install."""
    chosen = environment.path("MKL_LIB")
    found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
    path = str(chosen) if chosen else (str(found[-1]) if found else "libmkl_rt.so.3")
    try:
        return Mkl(ffi.dlopen(path))
    except (OSError, AttributeError) as error:
        raise AsmdnnError(
            f"--peer=mkl: no MKL library ({str(error).splitlines()[0]}); "
            "run pip install mkl, or point MKL_LIB at a libmkl_rt.so"
        ) from None
