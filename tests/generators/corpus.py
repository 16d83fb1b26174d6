"""The spec corpus: for every kernel family the cases that its code distinguishes, and the edges of each.

A line here brings correctness, guard-page, footprint, feature, ABI, determinism and golden tests.
"""

from collections.abc import Iterator
from functools import lru_cache

from asmdnn.generators.conv import ConvTileSpec
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.peak import PeakSpec
from asmdnn.generators.reorder import CopySpec, ReorderSpec, TransposeSpec
from tests.generators.conv_corpus import CONV_LEVELS, FAMILIES

KernelSpec = ConvTileSpec | ReorderSpec
Spec = KernelSpec | ExecutorSpec | PeakSpec
REORDER_ISA = "avx2"  # serves every level


def copy_specs() -> Iterator[CopySpec]:
    """Widths around one vector and around all registers; one row and several; rows apart, touching and transposed."""
    for zero in (False, True):
        for columns in (*range(1, 18), 24, 31, 120, 127, 128, 129, 136):
            yield CopySpec(REORDER_ISA, 3, columns, 4 * columns + 12, 4 * columns + 4, zero)
        for rows in (1, 2, 64):
            yield CopySpec(REORDER_ISA, rows, 5, 20, 20, zero)
        yield CopySpec(REORDER_ISA, 4, 8, 36, 200, zero)
    yield CopySpec(REORDER_ISA, 4, 8, 0, 32)  # the same row again and again


def transpose_specs() -> Iterator[TransposeSpec]:
    """All edges of one and of two squares; rows apart and touching; many squares."""
    for rows in range(1, 9):
        for columns in range(1, 18):
            yield TransposeSpec(REORDER_ISA, rows, columns, 4 * columns + 20, 4 * rows + 8)
        yield TransposeSpec(REORDER_ISA, rows, 11, 4 * 11, 4 * rows)
    yield TransposeSpec(REORDER_ISA, 8, 256, 1024, 32)
    yield TransposeSpec(REORDER_ISA, 5, 64, 8192, 20)


@lru_cache
def families() -> dict[str, tuple[KernelSpec, ...]]:
    """The kernels that work on buffers and claim a footprint, by what they are there for."""
    found: dict[str, tuple[KernelSpec, ...]] = {
        f"conv-{name}-{isa}": tuple(family(isa)) for isa in CONV_LEVELS for name, family in FAMILIES.items()
    }
    return found | {f"copy-{REORDER_ISA}": tuple(copy_specs()), f"transpose-{REORDER_ISA}": tuple(transpose_specs())}


@lru_cache
def kernel_specs() -> tuple[KernelSpec, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys(spec for family in families().values() for spec in family))


@lru_cache
def corpus() -> tuple[Spec, ...]:
    """Every spec of the project's generators."""
    executors = (ExecutorSpec(arguments) for arguments in range(1, 9))
    return (*kernel_specs(), *executors, *(PeakSpec(isa) for isa in CONV_LEVELS))
