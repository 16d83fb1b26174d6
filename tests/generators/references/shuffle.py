"""What shuffle kernels compute, one element at a time, written from the tables in the generators' docstrings."""

import numpy as np

from asmdnn.generators.move.permute import PermuteSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.generators.move.shuffle_elements import ElementsSpec
from asmdnn.generators.move.shuffle_network import ZERO
from tests.generators.case import Case, Reference
from tests.support.arena import REACH_BYTES
from tests.support.octets import Octets

Move = tuple[int, int, int]  # (src, dst, bytes); src is -1 for zeros


def shuffle_case(spec: ShuffleSpec | PermuteSpec | ElementsSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: Octets(random.integers(0, 256, 2 * REACH_BYTES, np.uint8)) for name in ("src", "dst")}
    shuffle(spec, memory)
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


def shuffle(spec: ShuffleSpec | PermuteSpec | ElementsSpec, memory: dict[str, Octets]) -> None:
    """Move everything; of a tile, whole windows are read, and of a permutation whole vectors."""
    if isinstance(spec, PermuteSpec):
        for pixel in range(spec.pixels):
            for unit in spec.units:
                for at, _ in unit.sources:
                    memory["src"].load(pixel * spec.pixel_bytes + at, spec.vector_bytes)
    if isinstance(spec, ShuffleSpec):
        for pixel in range(spec.pixels):
            for part in spec.parts:
                for i in range(part.count):
                    start = pixel * spec.pixel_bytes + part.src + i * part.src_step
                    for window in part.tile.windows:
                        memory["src"].load(start + window, spec.unit_bytes)
    for src, dst, size in moved(spec):
        memory["dst"].store(dst, memory["src"].load(src, size) if src >= 0 else np.zeros(size, np.uint8))


def moved(spec: ShuffleSpec | PermuteSpec | RowsSpec | ElementsSpec) -> list[Move]:
    """Every move that the spec stands for."""
    if isinstance(spec, PermuteSpec):
        shifts = range(0, spec.pixels * spec.pixel_bytes, spec.pixel_bytes)
        return [
            (shift + at + 4 * lane, shift + unit.dst + 4 * i, 4)
            for shift in shifts for unit in spec.units for at, lanes in unit.sources
            for i, lane in enumerate(lanes) if lane >= 0
        ]  # fmt: skip
    if isinstance(spec, RowsSpec):
        return [(-1 if spec.zero else r * spec.src_step, r * spec.dst_step, spec.row_bytes) for r in range(spec.rows)]
    if isinstance(spec, ElementsSpec):
        steps = range(0, spec.count * spec.step, spec.step)
        return [(s + step, d + step, spec.element_bytes) for s, d in spec.moves for step in steps]
    moves = []
    for pixel in range(spec.pixels):
        for part in spec.parts:
            for i in range(part.count):
                src, dst = (pixel * spec.pixel_bytes + base for base in (part.src, part.dst))
                src, dst = src + i * part.src_step, dst + i * part.dst_step
                for at, lanes in zip(part.tile.dst, part.tile.lanes, strict=True):
                    for k, lane in enumerate(lanes):
                        window, within = divmod(lane, spec.unit_bytes)
                        origin = -1 if lane == ZERO else src + part.tile.windows[window] + within
                        moves.append((origin, dst + at + k * spec.element_bytes, spec.element_bytes))
    return moves


REFERENCES = {kind: Reference(shuffle_case, rounds=False) for kind in (ShuffleSpec, PermuteSpec, ElementsSpec)}
