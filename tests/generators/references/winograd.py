"""What Winograd's transforms compute, by matrices from the theory, and data for them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import polynomial

from asmdnn.bench.typed import narrowed
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST, SumOp
from asmdnn.generators.winograd.arguments import ARGUMENTS
from asmdnn.generators.winograd.diff_dst import DiffDstTransformSpec
from asmdnn.generators.winograd.diff_weights import DiffWeightsTransformSpec
from asmdnn.generators.winograd.products import ProductsTransformSpec
from asmdnn.generators.winograd.source import SourceTransformSpec
from asmdnn.generators.winograd.weights import WeightsTransformSpec
from asmdnn.types import DataType, f32
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import LANES, Memory, keeps_integers, operand
from tests.support import functions
from tests.support.arena import Doubles, buffer_of, elements, magnitudes

Spec = SourceTransformSpec | ProductsTransformSpec | WeightsTransformSpec | DiffWeightsTransformSpec
TARGETS: dict[type[Spec], str] = {
    SourceTransformSpec: "source",
    ProductsTransformSpec: "dst",
    WeightsTransformSpec: "transformed",
    DiffDstTransformSpec: "weights",
    DiffWeightsTransformSpec: "dst",
}
NEARLY_NOTHING = 1e-12  # all other entries are above 0.1
ROUNDINGS = 12  # of a term on its way through both axes: for each a coefficient, its product, up to four sums
IN_F64 = 1 + 2.0**-20  # one rounding, and what is rounded before


class Matrices(NamedTuple):
    """y = A^T ((G g) * (B^T d)): `results` is A^T, `weights` G, `source` B^T."""

    results: Doubles
    weights: Doubles
    source: Doubles


@cache
def matrices(m: int) -> Matrices:
    """For m = 2 as Lavin and Gray print them; for m = 4 by interpolation at 0, +-sqrt(1/2), +-sqrt(2) and infinity."""
    if m == 2:
        return Matrices(
            np.array([[1, 1, 1, 0], [0, 1, -1, -1.0]]),
            np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
            np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1.0]]),
        )
    points = [0.0, 0.5**0.5, -(0.5**0.5), 2**0.5, -(2**0.5)]
    return by_interpolation(points, m)


def by_interpolation(points: Sequence[float], m: int) -> Matrices:
    """Toom and Cook's algorithm, transposed: Lagrange's polynomials at the points, and one for infinity."""
    n = len(points) + 1
    results, weights, source = np.zeros((m, n)), np.zeros((n, 3)), np.zeros((n, n))
    for i, p in enumerate(points):
        others = [q for q in points if q != p]
        results[:, i] = [p**k for k in range(m)]
        weights[i] = [p**k / np.prod([p - q for q in others]) for k in range(3)]
        source[i, :-1] = polynomial.polyfromroots(others)
    results[-1, -1] = weights[-1, -1] = 1
    source[-1] = polynomial.polyfromroots(points)
    source[abs(source) < NEARLY_NOTHING] = 0  # sums of square roots that cancel, but for their rounding
    return Matrices(results, weights, source)


def both_ways(matrix: Doubles, tile: Doubles) -> Doubles:
    """matrix tile matrix^T, of a tile [i, j, channel]."""
    return np.einsum("ai,ijc,bj->abc", matrix, tile, matrix)


def transform_case(spec: Spec, random: np.random.Generator, integers: bool) -> Case:
    """Square roots are rounded whatever the data; the bound is that of the terms' magnitudes."""
    kinds = kinds_of(spec)
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame}
    if isinstance(spec, ProductsTransformSpec):
        for at_bytes in padding_of_dst(spec):
            memory["dst"].clear(at_bytes, 1)
    compute(spec, memory, positive=False)
    chain = spec.post_ops if isinstance(spec, ProductsTransformSpec) else ()
    is_linear = keeps_integers(chain)
    sizes = magnitudes(memory)
    bounded = replace(spec, post_ops=(SumOp(1.0),)) if isinstance(spec, ProductsTransformSpec) and chain else spec
    compute(bounded, sizes, positive=True)
    target = TARGETS[type(spec)]
    size, result = buffer_of(sizes[target]), buffer_of(memory[target])
    assert size is not None and result is not None
    roundings = IN_F64 if isinstance(spec, WeightsTransformSpec) else ROUNDINGS + 2 * len(chain)
    tolerance = size.wanted * UNIT_ROUNDOFF * roundings
    if not is_linear:
        tolerance = MOST_SLOPE * (tolerance.max() + UNIT_ROUNDOFF * np.abs(result.wanted))
    if result.kind != f32:
        wanted, tolerance = narrowed(result.wanted, tolerance, result.kind)
        result = replace(result, wanted=wanted)
    return Case(spec, {**{name: buffer_of(memory[name]) for name in memory}, target: result}, {target: tolerance})


def kinds_of(spec: Spec) -> dict[str, DataType]:
    """The element types of arguments that need not be f32."""
    if isinstance(spec, DiffDstTransformSpec | DiffWeightsTransformSpec):
        return {}
    if isinstance(spec, SourceTransformSpec):
        return {"src": spec.src_type, "source": spec.source_type}
    if isinstance(spec, WeightsTransformSpec):
        return {"transformed": spec.dtype}
    operands = {f"operand{len(ARGUMENTS) + i}": kind for i, kind in enumerate(spec.operand_types)}
    return {"dst": spec.dst_type, **operands}


def padding_of_dst(spec: ProductsTransformSpec) -> list[int]:
    """Where dst has elements for lanes after the last channel."""
    lanes, size = LANES[spec.isa], spec.dst_type.size_bytes
    padding = range(spec.channels, -(-spec.channels // lanes) * lanes if spec.whole_vectors else spec.channels)
    return [
        y * spec.row_bytes + x * spec.pixel_bytes + c // lanes * spec.vector_bytes + size * (c % lanes)
        for y, x in spec.pixels
        for c in padding
    ]


def compute(spec: Spec, memory: Memory, positive: bool) -> None:
    """With `positive` coefficients for the size of what results are summed from."""
    of_form = Matrices(*map(np.abs, matrices(spec.m))) if positive else matrices(spec.m)
    if isinstance(spec, DiffDstTransformSpec):
        source(spec, memory, of_form.results.T, "dst", "weights")
    elif isinstance(spec, DiffWeightsTransformSpec):
        diff_weights(spec, memory, of_form.weights.T)
    elif isinstance(spec, SourceTransformSpec):
        source(spec, memory, of_form.source)
    elif isinstance(spec, ProductsTransformSpec):
        products(spec, memory, of_form.results)
    else:
        weights(spec, memory, of_form.weights)


def source(
    spec: SourceTransformSpec, memory: Memory, matrix: Doubles, read: str = "src", written: str = "source"
) -> None:
    """Of a tile of src, or of diff_dst."""
    n, lanes = matrix.shape[1], LANES[spec.isa]
    vectors = -(-spec.channels // lanes)
    tile = np.zeros((n, n, vectors * lanes))
    for i in range(*spec.rows):
        for j in range(*spec.cols):
            for k in range(vectors):
                count = min(lanes, spec.channels - k * lanes)
                at = i * spec.row_bytes + j * spec.pixel_bytes + k * spec.vector_bytes
                tile[i, j, k * lanes :][:count] = memory[read].load(at, count)
    for f, row in enumerate(both_ways(matrix, tile).reshape(len(matrix) ** 2, -1)):
        memory[written].store(f * spec.frequency_bytes, row)


def weights(spec: WeightsTransformSpec, memory: Memory, matrix: Doubles) -> None:
    count = spec.vectors * LANES[spec.isa]
    taps = np.array([memory["weights"].load(t * spec.tap_bytes, count) for t in range(9)])
    transformed = both_ways(matrix, taps.reshape(3, 3, count))
    for f, row in enumerate(transformed.reshape(-1, count)):
        memory["transformed"].store(f * spec.frequency_bytes, row)


def diff_weights(spec: DiffWeightsTransformSpec, memory: Memory, matrix: Doubles) -> None:
    n, lanes = spec.m + 2, LANES[spec.isa]
    count = spec.vectors * lanes
    sums = np.array([memory["products"].load(f * spec.frequency_bytes, count) for f in range(n * n)])
    for t, row in enumerate(both_ways(matrix, sums.reshape(n, n, count)).reshape(-1, count)):
        at = t * spec.tap_bytes
        memory["dst"].store(at, row + (memory["dst"].load(at, count) if spec.accumulate else 0))
        memory["dst"].store(at + 4 * count, np.zeros(spec.zeros * lanes))


def products(spec: ProductsTransformSpec, memory: Memory, matrix: Doubles) -> None:
    n, lanes = spec.m + 2, LANES[spec.isa]
    count = -(-spec.channels // lanes) * lanes
    tile = np.array([memory["products"].load(f * spec.frequency_bytes, count) for f in range(n * n)])
    sums = both_ways(matrix, tile.reshape(n, n, count))
    if spec.bias:
        sums[:, :, : spec.channels] += memory["bias"].load(0, spec.channels)
    read = [o for o in operands_read(spec.post_ops) if o is not OLD_DST]
    for y, x in spec.pixels:
        for k in range(count // lanes):
            real = min(lanes, spec.channels - k * lanes)
            stored = lanes if spec.whole_vectors else real
            at = y * spec.row_bytes + x * spec.pixel_bytes + k * spec.vector_bytes
            old = memory["dst"].load(at, stored) if OLD_DST in operands_read(spec.post_ops) else None
            row = y * spec.row_pixels + x
            operands = {o: operand(o, row, k, real, stored, memory) for o in read}
            result = functions.apply(spec.post_ops, sums[y, x, k * lanes :][:stored], old, operands)
            result[real:] = 0  # padding
            memory["dst"].store(at, result)


REFERENCES = {kind: Reference(transform_case, rounds=True) for kind in TARGETS}
