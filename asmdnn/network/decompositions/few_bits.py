"""onnxruntime's operators on integers of few bits with a scale for each block: MatMulNBits, GatherBlockQuantized.

Source: docs/ContribOperators.md of onnxruntime.
"""

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.element_types import EXTENSIONS
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.attributes import INT, needed
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantized.weights import DEQUANTIZE
from asmdnn.primitives.quantized.description import LEAST_GROUP, MOST_GROUP
from asmdnn.primitives.quantized.octets import NIBBLE_BITS, in_octets

BITS = (2, 4, 8)
NARROW = {"float16": 10, EXTENSIONS[16]: 16}  # and ONNX's numbers of them
FLOATS = ("float32", *NARROW)  # of scales
ROUNDS = 4  # the accuracy level that allows a to be rounded to 8 bits


def data_of(w: Decomposer, name: str, what: str) -> Array:
    """Raises Unimplemented for what is no constant."""
    found = w.data(name)
    if found is None:
        raise Unimplemented(f"{w.node} has {what} {shown(name)}, which are no constant: pass it in constants=")
    return found


def narrowed(w: Decomposer, x: str, like: str) -> str:
    """f32 as the type of another value."""
    code = NARROW.get(w.value(like).dtype.name)
    return x if code is None else w("Cast", x, to=code)


def unpacked(octets: Array, bits: int) -> Array:
    """Numbers of so many bits of the last axis of bytes, the low ones first."""
    parts = [octets >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*octets.shape[:-1], -1)


def floats_of(w: Decomposer, name: str, what: str, *dims: tuple[int, ...]) -> Array:
    """f32 of these dims, or of others that they may have in a file.  Raises InvalidArguments, Unimplemented."""
    found = data_of(w, name, what)
    if found.dtype.name not in FLOATS:
        known = " or ".join(FLOATS)
        raise InvalidArguments(f"{w.node} has {what} {shown(name)} of {found.dtype}, they must be {known}")
    if found.shape not in dims:
        raise InvalidArguments(f"{w.node} has {what} of dims {found.shape}, {dims[0]} fit")
    numbers = found.astype(np.float32).reshape(dims[0])
    if not np.isfinite(numbers).all():
        raise InvalidArguments(f"{w.node} has {what} {shown(name)} that are not finite")
    return numbers


class BlocksOfBits:
    """Of the columns n of weights: numbers (n, groups, group), scales and zero points (n, groups), as a node says."""

    def __init__(self, w: Decomposer, node: Node, b: str, scales: str, points: str) -> None:
        self.k, n, self.bits, self.group = (node.get(x) for x in ("K", "N", "bits", "block_size"))
        self.bits = 4 if self.bits is None else self.bits
        if self.bits not in BITS:
            raise InvalidArguments(f"{node} has bits {self.bits}: 2, 4 and 8 are known")
        if min(self.k, n) < 1 or self.group < LEAST_GROUP or self.group & (self.group - 1):
            sizes = f"K {self.k}, N {n} and block_size {self.group}"
            raise InvalidArguments(f"{node} has {sizes}: they must be above 0, a block a power of two from 16 on")
        groups = -(-self.k // self.group)
        octets, size = data_of(w, b, "weights"), self.group * self.bits // 8
        if octets.dtype != np.uint8 or octets.shape != (n, groups, size):
            raise InvalidArguments(f"{node} has weights {octets.dtype} {octets.shape}, uint8 {(n, groups, size)} fit")
        self.numbers = unpacked(octets, self.bits)
        self.scales = floats_of(w, scales, "scales", (n, groups), (n * groups,))
        self.zero_point = 1 << self.bits - 1
        self.points = None if points == NOTHING else self.points_of(w, points)
        if self.points is not None and (self.points == self.points.flat[0]).all():
            common = float(self.points.flat[0])
            if common == int(common) and 0 <= common < 1 << self.bits:
                self.points, self.zero_point = None, int(common)

    def points_of(self, w: Decomposer, name: str) -> Array:
        """f32 (n, groups): packed bits, or floats."""
        n, groups = self.scales.shape
        found = data_of(w, name, "zero points")
        if found.dtype.kind != "u":
            return floats_of(w, name, "zero points", (n, groups), (n * groups,))
        size = -(-groups * self.bits // 8)
        if found.dtype != np.uint8 or found.size != n * size:
            what = f"{found.dtype} {found.shape}"
            raise InvalidArguments(f"{w.node} has zero points {what}, uint8 {(n, size)} fit, or floats {(n, groups)}")
        return unpacked(found.reshape(n, size), self.bits)[:, :groups].astype(np.float32)

    @property
    def is_native(self) -> bool:
        """Whether products take such groups."""
        return bool(self.k % self.group == 0 and self.group <= MOST_GROUP)

    def floats(self) -> Array:
        """f32 (k, n)."""
        shift = np.float32(self.zero_point) if self.points is None else self.points[..., None]
        whole = (self.numbers.astype(np.float32) - shift) * self.scales[..., None]
        return np.ascontiguousarray(whole.reshape(len(whole), -1)[:, : self.k].T)


def matmul(w: Decomposer, node: Node, a: str, b: str, scales: str, *rest: str) -> tuple[str, ...]:
    points, order, bias = rest
    if order != NOTHING:
        raise Unimplemented(f"{node} has a g_idx {shown(order)}, an order of rows that is not known: export without it")
    if node.get("weight_prepacked", 0):
        raise Unimplemented(f"{node} has weight_prepacked, a format of another device: export without it")
    blocks, x = BlocksOfBits(w, node, b, scales, points), w.number(a)
    if w.shape(a)[-1:] != (blocks.k,):
        raise InvalidArguments(f"{node} has an operand of dims {w.shape(a)}, its last one must be K, {blocks.k}")
    y = product(w, x, blocks, node.get("accuracy_level", 0) == ROUNDS)
    return (narrowed(w, y if bias == NOTHING else w.add(y, w.number(bias)), a),)


def product(w: Decomposer, x: str, blocks: BlocksOfBits, rounds: bool) -> str:
    """With weights as they are, or as f32 where groups are none of the kernels'."""
    if not blocks.is_native:
        return w("MatMul", x, w.constant(blocks.floats()))
    bits = max(blocks.bits, NIBBLE_BITS)
    numbers = blocks.numbers.reshape(len(blocks.numbers), -1).T
    table = np.ascontiguousarray(blocks.scales.T)
    operands = [w.constant(in_octets(numbers, bits), np.uint8), w.constant(table)]
    if blocks.points is not None:
        operands.append(w.constant(table * blocks.points.T))
    what = {"bits": bits, "group": blocks.group, "zero_point": float(blocks.zero_point), "rounds": int(rounds)}
    return w("MatMulNBits", x, *operands, domain=OWN, **what)


def gather(w: Decomposer, node: Node, data: str, indices: str, scales: str, points: str) -> tuple[str, ...]:
    """Rows of bytes, and of their scales; or of f32, where blocks lie along the axis of the rows."""
    table = data_of(w, data, "data")
    bits, block = node.get("bits", 4), node.get("block_size", 128)
    is_packed = table.dtype == np.uint8 and bits < 8
    if table.dtype.name not in ("int4", "uint4", "int8", "uint8") or bits not in BITS:
        raise InvalidArguments(f"{node} has data of {table.dtype} with bits {bits}: int4, uint4, and uint8 are known")
    numbers = unpacked(table, bits) if is_packed else table.astype(np.int16)
    along, axis = (normal(node.get(name, i), numbers.ndim) for i, name in ((0, "gather_axis"), (1, "quantize_axis")))
    if block < LEAST_GROUP or block & (block - 1):
        raise InvalidArguments(f"{node} has block_size {block}: it must be a power of two from 16 on")
    if is_packed and axis != numbers.ndim - 1:
        raise InvalidArguments(f"{node} has quantize_axis {axis}: of data in bytes it must be the last one")
    dims = tuple(-(-n // block) if i == axis else n for i, n in enumerate(numbers.shape))
    factors, shift = floats_of(w, scales, "scales", dims), np.zeros(dims, np.float32)
    if points != NOTHING:
        given = data_of(w, points, "zero points")
        packed = (*dims[:-1], -(-dims[-1] * bits // 8)) if is_packed else dims
        if given.shape != packed or given.dtype != table.dtype:
            what = f"{given.dtype} of dims {given.shape}"
            raise InvalidArguments(f"{node} has zero points of {what}, {table.dtype} of dims {packed} fit")
        shift = (unpacked(given, bits)[..., : dims[-1]] if is_packed else given).astype(np.float32)
    elif table.dtype == np.uint8:
        shift += 1 << bits - 1
    if axis != numbers.ndim - 1 or along == axis or numbers.shape[axis] % block:
        wide = [np.repeat(x, block, axis)[tuple(map(slice, numbers.shape))] for x in (factors, shift)]
        floats = (numbers.astype(np.float32) - wide[1]) * wide[0]
        return (narrowed(w, w("Gather", w.constant(floats), indices, axis=along), scales),)
    is_signed = numbers.min(initial=0) < 0
    octets = w.constant(numbers, np.int8 if is_signed else np.uint8)
    rows = w(DEQUANTIZE, w("Gather", octets, indices, axis=along), w.constant(1))
    whole = w.shape(rows)
    parts = w.reshaped(rows, *whole[:-1], dims[-1], block)
    numbers_of_blocks = [
        w.lifted(w("Gather", w.constant(x), indices, axis=along), len(whole))
        for x in (factors, *([factors * shift] if shift.any() else []))
    ]
    y = w.mul(parts, numbers_of_blocks[0])
    if len(numbers_of_blocks) > 1:
        y = w.sub(y, numbers_of_blocks[1])
    return (narrowed(w, w.reshaped(y, *whole), scales),)


SIZES = {name: needed(INT) for name in ("K", "N", "block_size")}
DECOMPOSITIONS = {
    "MatMulNBits": ForeignOperator(
        matmul,
        "xxx???",
        attributes={**SIZES, "bits": INT, "accuracy_level": INT, "weight_prepacked": INT},
        of_integers=True,
    ),
    "GatherBlockQuantized": ForeignOperator(
        gather,
        "xxx?",
        attributes=dict.fromkeys(("bits", "block_size", "gather_axis", "quantize_axis"), INT),
        of_integers=True,
    ),
}
