"""Which record writes which part of an output: the schedule as tiles over a plane, derived from the footprints."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from asmdnn.explain.model import OutputBlock, Plane, TileRun
from asmdnn.planning.phase import Phase
from asmdnn.planning.phases import arguments_of
from asmdnn.planning.plan import Plan

MOST_RUNS: Final = 60_000  # of a picture; beyond it nobody sees anything
MOST_ELEMENTS: Final = 1 << 25
_AXES: Final = {3: "ncw", 4: "nchw", 5: "ncdhw"}

Int32 = npt.NDArray[np.int32]


class PlanesOfPhases:
    """The planes of a plan's phases.  A long sum is many phases, which write alike: these have one."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._known: dict[object, Plane | None] = {}

    def of(self, phase: Phase, bounds: npt.NDArray[np.int64]) -> Plane | None:
        """As plane_of."""
        places = [i for i, view in enumerate(phase.arguments) if view.buffer in self.plan.outputs]
        records = phase.records[:, [0, *(1 + i for i in places)]].tobytes()
        views = tuple((i, phase.arguments[i], *(strides[i] for _, strides in phase.repeats)) for i in places)
        times = tuple(times for times, _ in phase.repeats)
        key = self.plan.numbers_of(phase), views, times, records, bounds.tobytes()
        if key not in self._known:
            self._known[key] = plane_of(self.plan, phase, bounds)
        return self._known[key]


def plane_of(plan: Plan, phase: Phase, bounds: npt.NDArray[np.int64]) -> Plane | None:
    """The tiles of the output tensor that the phase writes; bounds: the first record of every thread, and the end.

    Of more than one image only the first is shown.  None if the phase writes no output, or more than can be shown.
    """
    outputs = written(phase).intersection(plan.outputs)
    name = next((view.buffer for view in phase.arguments if view.buffer in outputs), "")
    if not name or phase.count > MOST_RUNS:
        return None
    phase = phase.written_out()
    desc = plan.tensors[name]
    if desc.size_bytes // desc.dtype.size_bytes > MOST_ELEMENTS:
        return None
    owner = owners(plan, phase, name)[desc.offsets()]
    several = owner.ndim > 2 and owner.shape[0] > 1
    if several:
        owner = owner[:1]
    *leading, rows, columns = (1, *owner.shape) if owner.ndim == 1 else owner.shape
    letters = _AXES.get(owner.ndim, "abcdefghijkl"[: owner.ndim])
    planes = owner.reshape(-1, rows, columns)
    starts = np.flatnonzero(np.r_[True, (planes[1:] != planes[:-1]).any(axis=(1, 2))])
    ends = np.r_[starts[1:], len(planes)]
    shapes: dict[tuple[TileRun, ...], int] = {}
    blocks, drawn, number_of = [], 0, plan.numbers_of(phase)
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        shape, records = tiles_of(planes[begin])
        drawn += len(records) + (0 if shape in shapes else len(shape))
        number = shapes.setdefault(shape, len(shapes))
        if drawn > MOST_RUNS:
            return None
        title = block_name(begin, end, tuple(leading), letters)
        kernels = [number_of[k] for k in phase.records[records, 0]]
        threads = np.searchsorted(bounds, records, side="right") - 1
        blocks.append(OutputBlock(title, number, *(tuple(map(int, a)) for a in (records, kernels, threads))))
    of = f"{letters[0]} 0 of {desc.dims[0]}" if several else ""
    axes = (letters[-2], letters[-1]) if owner.ndim > 1 else ("", letters)
    return Plane(tensor=name, rows=rows, columns=columns, axes=axes, shapes=tuple(shapes), blocks=tuple(blocks), of=of)


def written(phase: Phase) -> set[str]:
    """The buffers that the records of a phase write."""
    touched = [arguments_of(spec) for spec, _ in phase.by_kernel()]
    return {phase.arguments[argument].buffer for each in touched for argument in each.written}


def owners(plan: Plan, phase: Phase, name: str) -> Int32:
    """For every element of a tensor's storage the record of the phase that writes it, -1 for none."""
    desc = plan.tensors[name]
    size = desc.dtype.size_bytes
    owner = np.full(desc.size_bytes // size, -1, np.int32)
    for spec, users in phase.by_kernel():
        for access in spec.footprint().writes:
            view = phase.arguments[access.argument]
            if view.buffer == name:
                offsets = view.offset_bytes + phase.records[users, 1 + access.argument]
                begin = (offsets + access.begin_bytes) // size
                span = np.arange((access.end_bytes - access.begin_bytes) // size)
                owner[begin[:, None] + span] = users[:, None]
    return owner


def tiles_of(plane: Int32) -> tuple[tuple[TileRun, ...], npt.NDArray[np.int64]]:
    """The runs of equal owners, row by row, and the owner of each tile, in order of first appearance."""
    number: dict[int, int] = {}
    runs = tuple(
        TileRun(row, begin, end, number.setdefault(owner, len(number)))
        for row, begin, end, owner in _runs(plane)
        if owner >= 0
    )
    return runs, np.array([owner for owner in number if owner >= 0], np.int64)


def _runs(plane: Int32) -> Iterator[tuple[int, int, int, int]]:
    """(row, first column, end, owner)."""
    first = np.ones(plane.shape, bool)
    first[:, 1:] = plane[:, 1:] != plane[:, :-1]
    rows, begins = np.nonzero(first)
    last_in_row = np.r_[rows[1:] != rows[:-1], True]
    ends = np.where(last_in_row, plane.shape[1], np.append(begins[1:], 0))
    places = np.stack((rows, begins, ends, plane[rows, begins]), axis=1)
    yield from map(tuple, places.tolist())


def block_name(begin: int, end: int, leading: tuple[int, ...], letters: str) -> str:
    """For example "n 0, c 0-15"; several images of a block are named by the ends."""
    if not leading or end - begin == int(np.prod(leading)) == 1:
        return "all"
    first, last = (tuple(map(int, np.unravel_index(i, leading))) for i in (begin, end - 1))
    words = [f"{x} {a}" if a == b else f"{x} {a}-{b}" for x, a, b in zip(letters, first, last, strict=False)]
    return ", ".join(words)
