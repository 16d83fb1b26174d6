"""What gradients of maxima that are scattered add up, a loop written from the table in the generator's docstring, and
places that name all positions, and none."""

from itertools import product

import numpy as np

from asmdnn.generators.pooling.scattered_maxima import NOWHERE, ScatteredMaximaSpec
from tests.generators.case import Case, Reference
from tests.support.octets import Octets

ROOM = 1 << 17


def scattered_maxima_case(spec: ScatteredMaximaSpec, random: np.random.Generator, _: bool) -> Case:
    numbers = random.integers(-8, 8, (2, ROOM // 4)).astype(np.float32)  # whose sums are exact
    memory = {name: Octets(x.view(np.uint8)) for name, x in zip(("dst", "diff"), numbers, strict=True)}
    offsets = (4 * np.arange(spec.positions)).astype(np.int32)
    offsets[spec.positions // 2 + 1 :: 9] = NOWHERE
    each = [*product(*map(range, spec.outputs))]
    kind, first, *steps = (np.int32, *spec.pixels) if spec.pixels else (np.uint8, 0, *[0] * len(spec.outputs))
    firsts = [first + sum(map(int, np.multiply(at, steps))) for at in each]
    strange = [n for n in (spec.positions, 255) if n < 256] + [-1, 1 << 30] * bool(spec.pixels)
    last = np.resize([*range(spec.positions), *strange], max(0, len(each) // 2))
    random.shuffle(last)
    places = (np.concatenate([np.zeros(len(each) - len(last), np.int64), last]) + firsts).astype(kind)
    for name, values in (("places", places.view(np.uint8)), ("offsets", offsets.view(np.uint8))):
        raw = random.integers(0, 256, ROOM, np.uint8)
        raw[Octets(raw).place(0, len(values))] = values
        memory[name] = Octets(raw)
    size = np.dtype(kind).itemsize
    for i, (at, begin) in enumerate(zip(each, firsts, strict=True)):
        place = int(memory["places"].load(i * size, size).view(kind)[0]) - begin
        x = memory["diff"].load(4 * i, 4).view(np.float32)
        x, place = (x, place) if 0 <= place < spec.positions else (np.zeros_like(x), 0)
        cell = sum(map(int, np.multiply(at, spec.steps))) + int(memory["offsets"].load(4 * place, 4).view(np.int32)[0])
        x, cell = (x, cell) if cell <= 4 * spec.cells - 4 else (np.zeros_like(x), 0)
        memory["dst"].store(cell, (memory["dst"].load(cell, 4).view(np.float32) + x).view(np.uint8))
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


REFERENCES = {ScatteredMaximaSpec: Reference(scattered_maxima_case, rounds=False)}
