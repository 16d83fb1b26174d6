"""What walks down trees compute, as loops written from the tables in the generators' docstrings, and data for them."""

from typing import Any

import numpy as np

from asmdnn.generators.trees.codes import TreeCodesSpec
from asmdnn.generators.trees.walk import TreeWalkSpec
from tests.generators.case import Case, Reference
from tests.support.octets import Octets

WALKS, ROW, VECTOR = 8, 32, 8
MOST_TRIES = 50
MOST_WORD, STEPS_MASK = (1 << 32) - 1, 8191
STARTS = {"sum": 0.0, "min": np.inf, "max": -np.inf}
JOINS = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Words:
    """Words of 4 bytes of an argument, whose accesses are noted."""

    def __init__(self, random: np.random.Generator) -> None:
        self.octets = Octets(random.integers(0, 256, 1 << 17, np.uint8))

    def put(self, at_bytes: int, words: Any) -> None:
        octets = np.ascontiguousarray(words).view(np.uint8).ravel()
        where = self.octets.place(at_bytes, len(octets))
        self.octets.initial[where] = self.octets.values[where] = octets

    def word(self, at_bytes: int) -> int:
        return int(self.octets.load(at_bytes, 4).view(np.uint32)[0])

    def floats(self, at_bytes: int, count: int) -> Any:
        return self.octets.load(at_bytes, 4 * count).view(np.float32)


def walk_case(spec: TreeWalkSpec, random: np.random.Generator, _: bool) -> Case:
    """Tables of which a call reads all."""
    for _ in range(MOST_TRIES):
        memory = walk_memory(spec, random)
        sums(spec, memory)
        places = {name: words.octets for name, words in memory.items()}
        whole = [(places[spec.frame[x.argument]], x) for x in spec.footprint().reads]
        if all(octets.read[octets.place(x.begin_bytes, x.end_bytes)].all() for octets, x in whole):
            return Case(spec, {name: octets.buffer() for name, octets in places.items()}, {})
    raise AssertionError("some of the tables is never read")


def walk_memory(spec: TreeWalkSpec, random: np.random.Generator) -> dict[str, Words]:
    """Random numbers, which are cut to the tables' sizes; few steps.

    All nodes are roots, each leads to another one: by chance to one of a pair where there are several rows.
    """
    memory = {name: Words(random) for name in spec.frame}
    memory["codes"].put(0, random.integers(1 << 16, MOST_WORD - (1 << 16), WALKS * spec.words, np.uint32))
    pairs = spec.units // 4
    nodes, next_one = random.integers(0, MOST_WORD, (pairs, 8), np.uint32), random.permutation(2 * pairs)
    for node, other in enumerate(next_one.tolist()):
        pair, side = divmod(node, 2)
        nodes[pair, 4 + 2 * side] = 4 * (other // 2) + (int(nodes[pair, 4 + 2 * side]) & ~STEPS_MASK)
        nodes[pair, 1 + 2 * side] = 4 * (node % spec.words) + (int(nodes[pair, 1]) & ~STEPS_MASK)
        if spec.along == "trees":
            nodes[pair, 2 * side] = 0 if other % 2 else MOST_WORD
        nodes[pair, 5 + 2 * side] = ROW * (node % spec.leaves) + ROW * spec.leaves * int(random.integers(9))
    nodes[:, 2:4] &= ~np.uint32(STEPS_MASK - 31)
    if spec.in_nodes:
        nodes[:, 5::2] = random.integers(-9, 9, (pairs, 2)).astype(np.float32).view(np.uint32)
    memory["nodes"].put(0, nodes)
    order = random.integers(0, 2, spec.trees) + 4 * random.integers(0, 1 << 29, spec.trees)
    order[0] = order[0] & -spec.trees  # all of them, the first one, too
    memory["order"].put(0, order.astype(np.uint32))
    memory["values"].put(0, random.integers(-9, 9, VECTOR * spec.leaves * blocks_of(spec)).astype(np.float32))
    memory["base"].put(0, random.integers(-9, 9, spec.columns).astype(np.float32))
    return memory


def sums(spec: TreeWalkSpec, memory: dict[str, Words]) -> None:
    by_rows, columns, order = spec.along == "rows", spec.columns, memory["order"]
    together, rows = (1, WALKS) if by_rows else (WALKS, 1)
    base = memory["base"].floats(0, columns)
    start = base if spec.joins == "sum" else np.full(columns, STARTS[spec.joins], np.float32)
    found = [start.copy() for _ in range(rows)]
    count = -int(np.int32(np.uint32(order.word(0)))) & (spec.trees - 1) or spec.trees
    for first in range(spec.trees - count, spec.trees, together):
        roots = [order.word(4 * (first + (0 if by_rows else walk))) & (spec.units - 3) for walk in range(WALKS)]
        steps = memory["nodes"].word(8 * roots[0] + (8 if by_rows else 12)) & 8191 | 1
        for walk, place in enumerate(roots):
            row = walk if by_rows else 0
            value = reached(spec, memory, place, steps, row)
            found[row] = JOINS[spec.joins](found[row], value)
    for row, result in enumerate(found):
        made = result if spec.joins == "sum" else result + base
        memory["dst"].octets.store(row * spec.dst_row_bytes, made.astype(np.float32).view(np.uint8))


def reached(spec: TreeWalkSpec, memory: dict[str, Words], place: int, steps: int, row: int) -> Any:
    """What the leaf gives where a walk ends."""
    nodes, codes = memory["nodes"], memory["codes"]
    for _ in range(steps):
        feature = nodes.word(8 * place + 4) & (4 * spec.words - 4)
        goes_on = nodes.word(8 * place) < codes.word(4 * spec.words * row + feature)
        place = (nodes.word(8 * place + 16) + goes_on) & (spec.units - 3)
    if spec.in_nodes:
        return nodes.floats(8 * place + 20, 1)
    offset = nodes.word(8 * place + 20) & (ROW * (spec.leaves - 1))
    rows = [memory["values"].floats(b * ROW * spec.leaves + offset, VECTOR) for b in range(blocks_of(spec))]
    return np.concatenate(rows)[: spec.columns]


def blocks_of(spec: TreeWalkSpec) -> int:
    return -(-spec.columns // VECTOR)


def codes_case(spec: TreeCodesSpec, random: np.random.Generator, _: bool) -> Case:
    """Numbers of both signs, zeros, infinities, subnormal ones and NaN of both signs."""
    memory = {name: Words(random) for name in spec.frame}
    strange = np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, np.nan, -np.nan], np.float32)
    whole = -(-spec.features // VECTOR) * VECTOR
    for row in range(spec.rows):
        x = np.concatenate([strange, random.standard_normal(spec.features).astype(np.float32)])
        memory["src"].put(row * spec.src_row_bytes, random.permutation(x)[: spec.features])
        made = np.zeros(spec.words, np.uint32)
        given = memory["src"].floats(row * spec.src_row_bytes, spec.features)
        for half, numbers in enumerate((given, -given) if spec.mirrored else (given,)):
            bits = np.zeros(whole, np.uint32)
            bits[: spec.features] = np.abs(numbers).view(np.uint32)
            below = np.full(whole, bool(half))
            below[: spec.features] = np.signbit(numbers)
            codes = np.where(below, ~(bits | np.uint32(1 << 31)), bits | np.uint32(1 << 31))
            codes[: spec.features][np.isnan(numbers)] = 2**32 - 1
            made[half * whole : (half + 1) * whole] = codes
        memory["codes"].octets.store(4 * spec.words * row, made.view(np.uint8))
    return Case(spec, {name: words.octets.buffer() for name, words in memory.items()}, {})


REFERENCES = {
    TreeWalkSpec: Reference(walk_case, rounds=False),
    TreeCodesSpec: Reference(codes_case, rounds=False),
}
