"""What calls of the k best by sorting leave in a row's state, by the docstrings of topk_sorted.py and topk_pairs.py."""

import numpy as np
import numpy.typing as npt

from asmdnn.generators.functions.topk_lists import Order
from asmdnn.generators.functions.topk_sorted import SortedTopKSpec
from tests.generators.case import Case, Reference
from tests.support.octets import Octets

Pairs = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]

LINE, WORD = 64, 8
NOTHING = np.uint64(0xFFE80000 << 32)
SPECIAL = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0])


def pairs_of(x: Floats, first: int, order: Order) -> Pairs:
    """Of numbers whose indices count from the first on."""
    y = x + np.float32(0) if order.largest else np.float32(0) - x
    high = y.view(np.uint32) + np.uint32(1 << 20)
    high[np.isnan(x)] = 0xFFE00000 if order.nan_last else 0x7FE00000
    index = np.arange(first, first + len(x), dtype=np.uint32)
    low = np.where(high >> np.uint32(31), index, ~index)
    return high.astype(np.uint64) << np.uint64(32) | low


def padded(pairs: Pairs, first: int, lanes: int) -> Pairs:
    """With pairs of nothing, which have indices too, up to a whole vector."""
    more = np.arange(len(pairs), len(pairs) + -len(pairs) % lanes, dtype=np.uint64) + np.uint64(first)
    return np.append(pairs, NOTHING | more)


def sorted_pairs(pairs: Pairs) -> Pairs:
    """The largest first."""
    return pairs[np.argsort(-pairs.view(np.float64), kind="stable")]


def laid(pairs: Pairs, lanes: int) -> Pairs:
    """As they lie in memory: column by column."""
    return np.ascontiguousarray(pairs.reshape(lanes, -1).T).ravel()


def results_of(pairs: Pairs, order: Order) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Indices, and the bits of numbers."""
    high, low = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
    y = (high - np.uint32(1 << 20)).view(np.float32)
    with np.errstate(invalid="ignore"):
        x = y if order.largest else np.float32(0) - y
    return np.where(high >> np.uint32(31), low, ~low), x.view(np.uint32)


def numbers(random: np.random.Generator, count: int) -> Floats:
    """With ties, and what is special."""
    x = np.float32(4) * random.integers(-4, 5, count).astype(np.float32)
    return np.where(random.random(count) < 0.2, random.choice(SPECIAL, count), x).astype(np.float32)


def topk_case(spec: SortedTopKSpec, random: np.random.Generator, _: bool) -> Case:
    """Calls that merge have most places taken, but for the one whose room is one less than all: it has one pair."""
    memory = {name: Octets(random.integers(0, 256, 1 << 17, np.uint8)) for name in spec.frame}
    state, lanes, order = memory["state"], (8 if spec.isa.startswith("avx512") else 4), spec.order
    waits = LINE + WORD * spec.size
    x = numbers(random, 3 * spec.size)
    best = sorted_pairs(pairs_of(x[: spec.size], 0, order))
    count = {"choose": 3, "merge": 1 if spec.room == spec.size - 1 else spec.size - 5}.get(spec.call, spec.size - 5)
    waiting = np.full(spec.size + lanes, NOTHING)
    waiting[:count] = random.permutation(pairs_of(x[spec.size :], spec.size, order))[:count]
    following = 5 * spec.size
    for at, data in ((0, np.uint64([count, following])), (LINE, laid(best, lanes)), (waits, waiting)):
        place = state.place(at, data.nbytes)
        state.initial[place] = state.values[place] = data.view(np.uint8)
    row = memory["src"].load(0, 0)
    if spec.elements:
        row = numbers(random, spec.elements)
        place = memory["src"].place(0, row.nbytes)
        memory["src"].initial[place] = row.view(np.uint8)
        memory["src"].read[place] = True

    def write(at: int, data: Pairs) -> None:
        state.store(at, data.view(np.uint8))

    def finish(found: Pairs) -> None:
        indices, values = results_of(found, order)
        write(LINE, laid(indices | values.astype(np.uint64) << np.uint64(32), lanes))
        for name, bits in (("dst", indices), ("values", values)):
            for t in range(spec.k if name in memory else 0):
                memory[name].store(t * spec.dst_step_bytes, bits[t : t + 1].view(np.uint8))

    if spec.call in ("whole", "first"):
        filled = padded(pairs_of(row, 0, order), 0, 2 * lanes)
        filled = np.append(filled, np.full(spec.size - len(filled), NOTHING))
        if spec.call == "whole":
            finish(sorted_pairs(filled))
        else:
            write(LINE, laid(sorted_pairs(filled), lanes))
            write(waits, np.full(spec.size + lanes, NOTHING))
            write(0, np.uint64([0, spec.elements]))
    elif spec.call == "choose":
        choose(spec, state, (count, following), best[spec.k - 1], pairs_of(row, following, order))
    else:
        joins = spec.call == "last" or count > spec.size - spec.room
        if spec.call == "merge":
            state.load(0, WORD)
        if joins:
            state.load(LINE, 2 * WORD * spec.size)
            found = sorted_pairs(np.concatenate([best, waiting[: spec.size]]))[: spec.size]
            write(waits, np.full(spec.size, NOTHING))
            if spec.call == "merge":
                write(LINE, laid(found, lanes))
                write(0, np.uint64([0]))
            else:
                finish(found)
    partly = {"state": waits + waiting.nbytes} if spec.footprint().partial else {}
    buffers = {name: octets.buffer(partly.get(name, 0)) for name, octets in memory.items()}
    return Case(spec, buffers, {}, partly=tuple(partly))


def choose(spec: SortedTopKSpec, state: Octets, counts: tuple[int, int], least: np.uint64, row: Pairs) -> None:
    """A vector's pairs are those of every other two elements; whole vectors are stored, if one of its numbers, or NaN,
    is above the least."""
    (count, following), waits = counts, LINE + WORD * spec.size
    lanes = 8 if spec.isa.startswith("avx512") else 4
    state.load(0, 2 * WORD)
    rank = spec.k - 1
    state.load(LINE + WORD * (rank % (spec.size // lanes) * lanes + rank // (spec.size // lanes)), WORD)
    limit = np.uint64([least]).view(np.float64)[0]
    for first in range(0, len(row), 2 * lanes):
        if not is_looked_at(spec.order, least, row[first : first + 2 * lanes]):
            continue
        quarters = padded(row[first : first + 2 * lanes], following + first, 2 * lanes).reshape(-1, 2, 2)
        for half in (0, 1):
            pairs = quarters[:, half].ravel()
            better = pairs[pairs.view(np.float64) > limit]
            state.store(waits + WORD * count, np.full(lanes, NOTHING).view(np.uint8))
            state.store(waits + WORD * count, better.view(np.uint8))
            count += len(better)
    state.store(waits + WORD * count, np.full(lanes, NOTHING).view(np.uint8))
    state.store(0, np.uint64([count, following + spec.elements]).view(np.uint8))


def is_looked_at(order: Order, least: np.uint64, pairs: Pairs) -> bool:
    """Whether a number of them is not at most that of the least one; so is NaN."""
    number = results_of(np.append(pairs, least), Order(largest=True, nan_last=order.nan_last))[1].view(np.float32)
    return bool((~(number[:-1] <= number[-1])).any())


REFERENCES = {SortedTopKSpec: Reference(topk_case, rounds=False)}
