"""What the calls of non-maximum suppression leave in memory, by the docstring of suppression.py, and boxes for them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.generators.functions.suppression import SuppressionSpec
from asmdnn.generators.functions.suppression_shape import KEPT, LEAST, SHARE
from tests.generators.case import Case, Reference
from tests.support.octets import Octets

Array = npt.NDArray[Any]
GRID, SCORES = 9, 6  # integers that coordinates and scores are of: many ties, many that touch
SPECIAL = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0])
NOBODY, NO_NUMBER = np.float32(-np.inf), np.uint32(0x7FC00000).view(np.float32)
ROOM = 1 << 19


class Given(Octets):
    """Memory whose reads all count, also of what was written before."""

    def begin(self, at_bytes: int, data: Array) -> None:
        """What is there before the call."""
        place = self.place(at_bytes, data.nbytes)
        self.initial[place] = self.values[place] = np.ascontiguousarray(data).view(np.uint8).ravel()

    def look(self, at_bytes: int, count: int, kind: Any = np.float32) -> Array:
        place = self.place(at_bytes, 4 * count)
        self.read[place] = True
        return self.values[place].copy().view(kind)

    def put(self, at_bytes: int, data: Array) -> None:
        self.store(at_bytes, np.ascontiguousarray(data).view(np.uint8).ravel())


def numbers(random: np.random.Generator, shape: tuple[int, ...], most: int, integers: bool) -> Array:
    x = random.integers(0, most, shape).astype(np.float32)
    if not integers:
        x += random.random(shape).astype(np.float32)
    return np.where(random.random(shape) < 0.03, random.choice(SPECIAL, shape), x).astype(np.float32)


def state_of(spec: SuppressionSpec, scores: Array, least: np.float32) -> Array:
    """As `admit` leaves it, u8."""
    at, lanes = spec.layout, spec.layout.lanes
    left = np.full(at.block * at.blocks, NOBODY)
    left[: spec.boxes] = np.where(scores > least, scores, NOBODY)
    highest = np.full(at.block_vectors * lanes, NOBODY)
    highest[: at.blocks] = left.reshape(at.blocks, -1).max(1)
    rows = np.full(KEPT * at.kept_vectors * lanes, NO_NUMBER)
    kept = np.full(at.kept_vectors * lanes, -1, np.int32)
    return np.concatenate([part.view(np.uint8) for part in (left, highest, rows, kept)])


def suppression_case(spec: SuppressionSpec, random: np.random.Generator, integers: bool) -> Case:
    """Some boxes have no area, corners the wrong way round, or are no numbers."""
    memory = {name: Given(random.integers(0, 256, ROOM, np.uint8)) for name in spec.frame}
    corners, scores = numbers(random, (4, spec.boxes), GRID, integers), numbers(random, (spec.boxes,), SCORES, integers)
    corners[2:] = np.where(random.random(spec.boxes) < 0.8, np.maximum(corners[:2], corners[2:]), corners[2:])
    share, least = np.float32(random.choice([0.0, 0.3, 0.5, 1.0])), np.float32(random.choice([-np.inf, 1.0]))
    state, partly = state_of(spec, scores, least), ()
    if spec.call == "admit":
        memory["scores"].begin(0, scores)
        memory["scores"].look(0, spec.boxes)
        memory["numbers"].begin(LEAST, np.float32([least]))
        memory["numbers"].look(LEAST, 1)
        memory["state"].put(0, state)
    elif spec.call == "deliver":
        kept, place = random.integers(-1, 99, spec.most).astype(np.int32), spec.layout.row(KEPT)
        memory["state"].begin(place, kept)
        memory["dst"].put(0, memory["state"].look(place, spec.most, np.int32))
    else:
        memory["corners"].begin(0, corners)
        memory["numbers"].begin(SHARE, np.float32([share]))
        memory["state"].begin(0, state)
        keep(spec, memory["corners"], memory["state"], memory["numbers"].look(SHARE, 1)[0])
        partly = ("corners", "state")
    whole = {"corners": corners.nbytes, "state": len(state)} if partly else {}
    buffers = {name: octets.buffer(whole.get(name, 0)) for name, octets in memory.items()}
    return Case(spec, buffers, {}, partly=partly)


def keep(spec: SuppressionSpec, corners: Given, state: Given, share: np.float32) -> None:
    """Box by box."""
    at, kept = spec.layout, 0
    while kept < spec.most:
        highest = state.look(at.highest, at.block_vectors * at.lanes)
        if (score := highest.max()) == NOBODY:
            return
        block = int(np.flatnonzero(highest == score)[0])
        left = state.look(4 * at.block * block, at.block)
        inside = int(np.flatnonzero(left == score)[0])
        left[inside] = NOBODY
        box = block * at.block + inside
        state.put(at.highest + 4 * block, left.max(keepdims=True))
        state.put(4 * box, left[inside : inside + 1])
        own = np.concatenate([corners.look(i * spec.plane_bytes + 4 * box, 1) for i in range(4)])
        if is_left_out(spec, state, own, kept, share):
            continue
        for i, x in enumerate((*own, area_of(own))):
            state.put(at.row(i) + 4 * kept, np.array([x]))
        state.put(at.row(KEPT) + 4 * kept, np.int32([box]))
        kept += 1


def is_left_out(spec: SuppressionSpec, state: Given, own: Array, kept: int, share: np.float32) -> bool:
    """Whether a box that was kept shares too much with it; a vector of them is looked at together."""
    at = spec.layout
    for first in range(0, kept, at.lanes):
        rows = [state.look(at.row(i) + 4 * first, at.lanes) for i in range(KEPT)]
        if any(overlaps(own, np.array(other), share) for other in zip(*rows, strict=True)):
            return True
    return False


def area_of(box: Array) -> np.float32:
    with np.errstate(all="ignore"):
        area = (box[2] - box[0]) * (box[3] - box[1])
    return np.float32(area) if area > 0 else NO_NUMBER


def overlaps(a: Array, b: Array, share: np.float32) -> bool:
    """a: corners; b: corners and area."""
    areas = area_of(a), b[4]
    with np.errstate(all="ignore"):
        sides = [min(a[2 + axis], b[2 + axis]) - max(a[axis], b[axis]) for axis in (0, 1)]
        if not (all(area > 0 for area in areas) and all(side > 0 for side in sides)):
            return False
        both = sides[0] * sides[1]
        return bool(both / (areas[0] + areas[1] - both) > share)


REFERENCES = {SuppressionSpec: Reference(suppression_case, rounds=True)}
