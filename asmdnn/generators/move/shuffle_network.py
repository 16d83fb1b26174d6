"""How the vectors of a shuffle are built from other vectors: which instructions, and in which order.

A *unit* is 16 bytes of dst, given as lanes: for each of its elements the byte of src that it comes from, or ZERO.
Bytes of src are numbered through *windows*, runs of 16 bytes that are loaded as one: window w holds bytes 16 w to
16 w + 15.  A register does the same work for several pixels, one in each quarter of 16 bytes, so nothing here crosses
quarters.

Two ways to build n units:
    gather   each unit alone from the windows it needs: VPSHUFB each into place and OR; for 4-byte elements any four
             come together in at most three VSHUFPS
    unpack   pairs of units are the low and the high interleave of two other units, of their even and of their odd
             elements; these are built in turn, down to whole windows
An interleave of 8 rows of bytes is 3 unpacks a unit where a gather takes 15 instructions; one of 3 rows is a gather.
`best` counts the instructions of both and keeps the cheaper.
"""

from functools import lru_cache

from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.records import dataclass

Lanes = tuple[int, ...]

ZERO = -1
DWORD_BYTES = 4  # elements that VSHUFPS moves
LARGEST_DISTANCE = 4
MOST_UNPACKED = 12  # units that are all in registers at the end; the 4 others build the last one


@dataclass(frozen=True, slots=True)
class GatherUnits:
    """Each unit from its windows."""

    units: tuple[Lanes, ...]
    cost: int


@dataclass(frozen=True, slots=True)
class Unpack:
    """Units k and k + distance are the low and the high interleave of what `evens` and `odds` build for the pair."""

    evens: "Network"
    odds: "Network"
    pairs: tuple[tuple[int, int], ...]
    cost: int


Network = GatherUnits | Unpack


@lru_cache(maxsize=4096)
def best(units: tuple[Lanes, ...], element_bytes: int, unit_bytes: int = QUARTER_BYTES) -> Network:
    """The network of the fewest instructions for `units`; many units, and small ones, can only be gathered."""
    found: Network = GatherUnits(units, sum(gather_cost(lanes, element_bytes, unit_bytes) for lanes in units))
    if unit_bytes != QUARTER_BYTES or len(units) > MOST_UNPACKED:
        return found
    distance = 1
    while distance <= LARGEST_DISTANCE and len(units) % (2 * distance) == 0:
        pairs = tuple(
            (k, k + distance) for start in range(0, len(units), 2 * distance) for k in range(start, start + distance)
        )
        evens, odds = (
            best(tuple(units[a][parity::2] + units[b][parity::2] for a, b in pairs), element_bytes) for parity in (0, 1)
        )
        cost = len(units) + evens.cost + odds.cost
        if cost < found.cost:
            found = Unpack(evens, odds, pairs, cost)
        distance *= 2
    return found


def gather_cost(lanes: Lanes, element_bytes: int, unit_bytes: int) -> int:
    """Instructions of a gather, loads not counted."""
    windows = windows_of(lanes, unit_bytes)
    if not windows or is_whole(lanes, element_bytes, unit_bytes):
        return 0
    if element_bytes == DWORD_BYTES and unit_bytes == QUARTER_BYTES:
        return len(dword_steps(lanes)) + (ZERO in lanes)
    return 2 * len(windows) - 1


def windows_of(lanes: Lanes, unit_bytes: int) -> tuple[int, ...]:
    """The windows that a unit needs, in the order of its elements."""
    return tuple(dict.fromkeys(lane // unit_bytes for lane in lanes if lane != ZERO))


def is_whole(lanes: Lanes, element_bytes: int, unit_bytes: int) -> bool:
    """Whether the unit is a window as it is."""
    first = lanes[0]
    return first % unit_bytes == 0 and lanes == tuple(range(first, first + unit_bytes, element_bytes))


@dataclass(frozen=True, slots=True)
class DwordStep:
    """VSHUFPS result, a, b, control.  Operands: a window (>= 0), or ~i for the result of step i."""

    a: int
    b: int
    control: int


def dword_steps(lanes: Lanes) -> tuple[DwordStep, ...]:
    """At most three VSHUFPS that bring four elements of 4 bytes together; the last one's result is the unit.

    A ZERO element comes from wherever its neighbour does, to be cleared later.
    """
    known = next(lane for lane in lanes if lane != ZERO)
    places = [divmod((known if lane == ZERO else lane) // DWORD_BYTES, QUARTER_BYTES // DWORD_BYTES) for lane in lanes]
    steps: list[DwordStep] = []
    operands: list[tuple[int, int, int]] = []
    for (x, i), (y, j) in (places[:2], places[2:]):
        if x != y:
            steps.append(DwordStep(x, y, i | i << 2 | j << 4 | j << 6))
            operands.append((~(len(steps) - 1), 0, 2))
        else:
            operands.append((x, i, j))
    (a, i, j), (b, k, m) = operands
    return (*steps, DwordStep(a, b, i | j << 2 | k << 4 | m << 6))


def byte_control(lanes: Lanes, window: int, element_bytes: int, unit_bytes: int) -> bytes:
    """The control of VPSHUFB that puts the bytes of `window` in their places, and zeros elsewhere; for a quarter."""
    one = [0x80] * unit_bytes
    for i, lane in enumerate(lanes):
        if lane != ZERO and lane // unit_bytes == window:
            for k in range(element_bytes):
                one[i * element_bytes + k] = lane % unit_bytes + k
    return bytes(
        value if value == 0x80 else value + start for start in range(0, QUARTER_BYTES, unit_bytes) for value in one
    )
