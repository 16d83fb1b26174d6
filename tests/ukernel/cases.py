"""How kernels are run for a test: on this CPU between unmapped pages, or emulated where it lacks their level."""

from typing import Any

import ml_dtypes
import numpy as np

from asmdnn.types import DATA_TYPES
from asmdnn.ukernel import UKernel
from tests.primitives.guarded import GuardedBuffer

LEVELS = ("avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni", "avx512_core_bf16")


def numpy_type(name: str) -> Any:
    """Of an element type: ml_dtypes' where numpy has none."""
    dtype = DATA_TYPES[name]
    return np.dtype(getattr(ml_dtypes, dtype.extension)) if dtype.extension else np.dtype(dtype.numpy)


def integers(rng: np.random.Generator, name: str, *shape: int) -> Any:
    """Few of them, so that sums of products are exact in every type."""
    least = 0 if name == "u8" else -4
    return rng.integers(least, 5, shape).astype(numpy_type(name))


def guarded(array: Any, at_end: bool) -> Any:
    """A copy whose next byte, or whose byte before, nobody may touch."""
    buffer = GuardedBuffer(array.nbytes, at_end)
    copy = np.frombuffer(buffer.array, array.dtype).reshape(array.shape)
    copy[...] = array
    KEPT.append(buffer)
    del KEPT[:-64]
    return copy


KEPT: list[GuardedBuffer] = []


def run(kernel: UKernel, *arguments: Any, at_end: bool = True) -> list[Any]:
    """The arguments after a call.  An access out of bounds ends the process, or is a fault of the emulator."""
    given = [guarded(x, at_end) if isinstance(x, np.ndarray) and kernel.runs_here else x for x in arguments]
    (kernel if kernel.runs_here else kernel.emulate)(*given)
    return given
