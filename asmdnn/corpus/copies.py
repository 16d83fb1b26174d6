"""The specs of copies and transposes: widths and heights around a vector, and around what the registers hold."""

from collections.abc import Iterator

from asmdnn.generators.reorder import CopySpec, TransposeSpec

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
