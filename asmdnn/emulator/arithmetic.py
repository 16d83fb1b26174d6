"""Lane-wise arithmetic, logic, comparisons and blends.

Where two operands are NaN, which of them an arithmetic result shows is up to the host's arithmetic.
"""

from collections.abc import Callable

import numpy as np
from iced_x86 import RegisterExt

from asmdnn.emulator.cpu import mask_value
from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

Lanewise = Callable[[Array, Array, Array], object]  # (a, b, out): out may be a or b

INFINITY_BITS, LEAST_NORMAL, QUIET_BIT = 0x7F80_0000, 0x80_0000, 0x40_0000  # of f32


def _maximum(a: Array, b: Array, out: Array) -> None:
    """The first if it is greater, else the second: also where one is NaN or both are zero."""
    out[:] = np.where(np.greater(a, b), a, b)


def _minimum(a: Array, b: Array, out: Array) -> None:
    out[:] = np.where(np.less(a, b), a, b)


def _and_not(a: Array, b: Array, out: Array) -> None:
    np.bitwise_and(~a, b, out)


def _multiply_low_halves(a: Array, b: Array, out: Array) -> None:
    np.multiply(a & np.uint64(0xFFFFFFFF), b & np.uint64(0xFFFFFFFF), out)


_FLOAT: dict[str, Lanewise] = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide,
                               "MAX": _maximum, "MIN": _minimum}  # fmt: skip
def _scale(a: Array, b: Array, out: Array) -> None:
    """a 2^floor b."""
    powers = np.clip(np.floor(np.where(np.isfinite(b), b, 0)), -2000, 2000).astype(np.int32)
    scaled = np.ldexp(a.astype(np.float64), powers // 2)  # twice, as f64 has no such powers of two
    infinite = a * np.where(b > 0, np.float32(np.inf), np.float32(0))
    out[:] = np.where(np.isnan(b), a + b, np.where(np.isinf(b), infinite, np.ldexp(scaled, powers - powers // 2)))


_LOGIC: dict[str, Lanewise] = {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor, "ANDN": _and_not}
_INTEGER: dict[str, tuple[type, Lanewise]] = {
    "VPADDB": (np.uint8, np.add), "VPADDW": (np.uint16, np.add), "VPADDD": (np.uint32, np.add),
    "VPADDQ": (np.uint64, np.add), "VPSUBB": (np.uint8, np.subtract), "VPSUBW": (np.uint16, np.subtract),
    "VPSUBD": (np.uint32, np.subtract), "VPSUBQ": (np.uint64, np.subtract), "VPMULLW": (np.uint16, np.multiply),
    "VPMULLD": (np.uint32, np.multiply), "VPMAXSB": (np.int8, _maximum), "VPMAXUB": (np.uint8, _maximum),
    "VPMAXSD": (np.int32, _maximum), "VPMINSD": (np.int32, _minimum),
    "VPMULUDQ": (np.uint64, _multiply_low_halves), "VPMAXUD": (np.uint32, _maximum), "VPMINUD": (np.uint32, _minimum),
}  # fmt: skip
_SCALAR = {f"V{name}S{kind}": function for name, function in _FLOAT.items() for kind in "SD"}
_SCALAR_TYPES: dict[str, tuple[type, type]] = {"S": (np.float32, np.uint32), "D": (np.float64, np.uint64)}
PACKED: dict[str, tuple[type, Lanewise]] = {
    **{f"V{name}P{kind}": (_SCALAR_TYPES[kind][0], function) for name, function in _FLOAT.items() for kind in "SD"},
    **{f"V{name}{kind}": (dtype, function) for name, function in _LOGIC.items()
       for kind, dtype in (("PS", np.uint32), ("PD", np.uint64))},
    **{f"VP{name}{kind}": (dtype, function) for name, function in _LOGIC.items()
       for kind, dtype in (("", np.uint64), ("D", np.uint32), ("Q", np.uint64))},
    **_INTEGER, "VSCALEFPS": (np.float32, _scale),
}  # fmt: skip


def packed(ops: Operands) -> Step:
    """Operand 0 = function(operand 1, operand 2) in every lane."""
    ops.only_default_rounding()
    dtype, function = PACKED[ops.name]
    a, b = ops.vector(1, dtype), ops.source(2, dtype, ops.vector_size)
    return ops.define(dtype, lambda out: function(a, b(), out))


def scalar(ops: Operands) -> Step:
    """Lane 0 is computed, the others of 128 bits come from operand 1."""
    ops.only_default_rounding()
    function = _SCALAR[ops.name]
    dtype, bits = _SCALAR_TYPES[ops.name[-1]]
    a, b = ops.vector(1, dtype), ops.source(2, dtype, np.dtype(dtype).itemsize)
    result: Array = np.empty(1, dtype)

    def lane() -> Array:
        function(a[:1], b(), result)
        return result

    return ops.define_low(bits, lane)


def square_root(ops: Operands) -> Step:
    ops.only_default_rounding()
    dtype = _SCALAR_TYPES[ops.name[-1]][0]
    a = ops.source(1, dtype, ops.vector_size)
    return ops.define(dtype, lambda out: np.sqrt(a(), out))


def shift(ops: Operands) -> Step:
    """VPSLLD, VPSRLD, VPSRAD and their W and Q forms by an immediate: counts past the lane shift everything out."""
    if ops.is_register(2) or ops.is_memory(2):
        ops.unsupported("a count that is not an immediate")
    bits, count = {"W": 16, "D": 32, "Q": 64}[ops.name[-1]], ops.immediate()
    signed = "SRA" in ops.name
    dtype: type = {16: (np.uint16, np.int16), 32: (np.uint32, np.int32), 64: (np.uint64, np.int64)}[bits][signed]
    a = ops.source(1, dtype, ops.vector_size)
    if signed:
        by = dtype(min(count, bits - 1))
        return ops.define(dtype, lambda out: np.right_shift(a(), by, out))
    if count >= bits:
        return ops.define(dtype, lambda out: np.multiply(a(), dtype(0), out))  # memory is read all the same
    by, function = dtype(count), np.left_shift if "SLL" in ops.name else np.right_shift
    return ops.define(dtype, lambda out: function(a(), by, out))


# The 32 float predicates: 8 relations in 2 x 2 variants of signalling and, for NaN, of the answer.
_UNORDERED: Callable[[Array, Array], Array] = lambda a, b: np.isnan(a) | np.isnan(b)  # noqa: E731
_RELATIONS: tuple[tuple[Callable[[Array, Array], Array], bool], ...] = (
    (np.equal, False), (np.less, False), (np.less_equal, False), (_UNORDERED, True),
    (np.not_equal, True), (lambda a, b: ~np.less(a, b), True), (lambda a, b: ~np.less_equal(a, b), True),
    (lambda a, b: ~_UNORDERED(a, b), False),
    (np.equal, True), (lambda a, b: ~np.greater_equal(a, b), True), (lambda a, b: ~np.greater(a, b), True),
    (lambda a, b: np.zeros(a.shape, bool), False),
    (np.not_equal, False), (np.greater_equal, False), (np.greater, False), (lambda a, b: np.ones(a.shape, bool), True),
)  # fmt: skip


def float_predicate(immediate: int) -> Callable[[Array, Array], Array]:
    """VCMPPS's predicate 0 to 31; bit 4 only changes which NaN signals."""
    relation, if_unordered = _RELATIONS[immediate & 15]
    return lambda a, b: np.where(_UNORDERED(a, b), if_unordered, relation(a, b))


_INTEGER_PREDICATES = (np.equal, np.less, np.less_equal, lambda a, b: np.zeros(a.shape, bool),
                       np.not_equal, np.greater_equal, np.greater, lambda a, b: np.ones(a.shape, bool))  # fmt: skip
_LANES: dict[str, tuple[type, type]] = {"B": (np.int8, np.uint8), "W": (np.int16, np.uint16),
                                         "D": (np.int32, np.uint32), "Q": (np.int64, np.uint64)}  # fmt: skip
_COMPARISONS = [f"VPCMP{relation}{lane}" for relation in ("EQ", "GT", "", "U") for lane in _LANES]
_MASK_TESTS = {"VPTESTM": lambda a, b: (a & b) != 0, "VPTESTNM": lambda a, b: (a & b) == 0}


def _predicate(ops: Operands) -> tuple[type, Callable[[Array, Array], Array]]:
    if ops.name in ("VCMPPS", "VCMPPD"):
        return _SCALAR_TYPES[ops.name[-1]][0], float_predicate(ops.immediate())
    if ops.name[:-1] in _MASK_TESTS:
        return _LANES[ops.name[-1]][1], _MASK_TESTS[ops.name[:-1]]
    relation, lane = ops.name.removeprefix("VPCMP")[:-1], ops.name[-1]
    dtype = _LANES[lane][relation == "U"]
    if relation in ("EQ", "GT"):
        return dtype, np.equal if relation == "EQ" else np.greater
    return dtype, _INTEGER_PREDICATES[ops.immediate() & 7]


def compare(ops: Operands) -> Step:
    """Into a mask register, where the write mask clears lanes; or (VEX) all ones in the lanes of a vector."""
    size, (dtype, predicate) = ops.vector_size, _predicate(ops)
    a, b = ops.vector(1, dtype), ops.source(2, dtype, size)
    if not RegisterExt.is_k(ops.ins.op_register(0)):
        signed = np.dtype(f"i{np.dtype(dtype).itemsize}").type
        return ops.define(signed, lambda out: np.negative(predicate(a, b()), out, dtype=signed))
    k, number, active = ops.cpu.k, ops.number(0), ops.active(size // np.dtype(dtype).itemsize)

    def step() -> None:
        lanes = predicate(a, b())
        k[number] = mask_value(lanes if active is None else lanes & active())

    return step


def classes_of(bits: Array) -> tuple[Array, ...]:
    """Whether each f32 is of each of VFPCLASSPS's classes, in the order of its immediate's bits."""
    size, negative = bits & 0x7FFF_FFFF, bits >> 31 > 0
    zero, infinite, nan = size == 0, size == INFINITY_BITS, size > INFINITY_BITS
    quiet, denormal = bits & QUIET_BIT > 0, ~zero & (size < LEAST_NORMAL)
    finite = negative & ~zero & (size < INFINITY_BITS)
    signs = (zero & ~negative, zero & negative, infinite & ~negative, infinite & negative)
    return nan & quiet, *signs, denormal, finite, nan & ~quiet


def of_classes(ops: Operands) -> Step:
    """VFPCLASSPS; denormals are that whatever MXCSR says, which emulated code leaves as it is."""
    size, wanted = 16 << ops.ins.op_code().l, ops.immediate()
    a, k, number, active = ops.source(1, np.uint32, size), ops.cpu.k, ops.number(0), ops.active(size // 4)

    def step() -> None:
        bits = a()
        lanes = np.zeros(len(bits), bool)
        for i, found in enumerate(classes_of(bits)):
            if wanted >> i & 1:
                lanes |= found
        k[number] = mask_value(lanes if active is None else lanes & active())

    return step


def blend_by_sign(ops: Operands) -> Step:
    """VBLENDVPS, VBLENDVPD: operand 2 where the sign bit of operand 3 is set, else operand 1."""
    signed, unsigned = _LANES["D" if ops.name[-1] == "S" else "Q"]
    a, b, sign = ops.vector(1, unsigned), ops.source(2, unsigned, ops.vector_size), ops.vector(3, signed)

    def fill(out: Array) -> None:
        out[:] = np.where(sign < 0, b(), a)

    return ops.define(unsigned, fill)


def blend_by_mask(ops: Operands) -> Step:
    """VBLENDMPS and relatives: operand 2 where the mask is set, else operand 1, or zero with {z}."""
    size, cpu, number = ops.vector_size, ops.cpu, ops.number(0)
    lane = _LANES[{"VBLENDMPS": "D", "VBLENDMPD": "Q"}.get(ops.name, ops.name[-1])][1]
    a, b, out = ops.vector(1, lane), ops.source(2, lane, size), ops.vector(0, lane)
    active, zeroing = ops.active(len(out)), ops.ins.zeroing_masking

    def step() -> None:
        out[:] = b() if active is None else np.where(active(), b(), 0 if zeroing else a)
        cpu.settle(number, size)

    return step


def ternary_logic(ops: Operands) -> Step:
    """VPTERNLOGD, VPTERNLOGQ: bit by bit, the immediate is the truth table of operands 0, 1 and 2."""
    lane = _LANES[ops.name[-1]][1]
    table, a, b, c = ops.immediate(), ops.vector(0, lane), ops.vector(1, lane), ops.source(2, lane, ops.vector_size)

    def fill(out: Array) -> None:
        third, result = c(), np.zeros_like(out)
        for row in (row for row in range(8) if table >> row & 1):
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (third if row & 1 else ~third)
        out[:] = result

    return ops.define(lane, fill)


def multiply_pairs(ops: Operands) -> Step:
    """VPMADDUBSW, VPMADDWD: products of two neighbours, added; of bytes the sum saturates, the first ones unsigned."""
    of_bytes = ops.name == "VPMADDUBSW"
    left, right, target = (np.uint8, np.int8, np.int16) if of_bytes else (np.int16, np.int16, np.int32)
    a, b = ops.vector(1, left), ops.source(2, right, ops.vector_size, masked=False)

    def fill(out: Array) -> None:
        sums = (a.astype(np.int64) * b()).reshape(-1, 2).sum(axis=1)
        out[:] = (np.clip(sums, -(2**15), 2**15 - 1) if of_bytes else sums).astype(target)  # 2**31 wraps

    return ops.define(target, fill)


def add_pairs(ops: Operands) -> Step:
    """VPHADDD: in each 128 bits, the sums of two neighbours of operand 1, then those of operand 2."""
    a, b = ops.vector(1, np.uint32), ops.source(2, np.uint32, ops.vector_size)

    def fill(out: Array) -> None:
        pairs = np.stack((a.reshape(-1, 2, 2), b().reshape(-1, 2, 2)), axis=1)
        out[:] = pairs.sum(axis=-1, dtype=np.uint32).ravel()

    return ops.define(np.uint32, fill)


TABLE: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(PACKED, packed), **dict.fromkeys(_SCALAR, scalar), "VSQRTPS": square_root, "VSQRTPD": square_root,
    **dict.fromkeys((f"VPS{kind}{lane}" for kind in ("LL", "RL", "RA") for lane in "WDQ"), shift),
    **dict.fromkeys(("VCMPPS", "VCMPPD", *_COMPARISONS), compare),
    "VFPCLASSPS": of_classes,
    **{f"{test}{lane}": compare for test in _MASK_TESTS for lane in _LANES},
    "VBLENDVPS": blend_by_sign, "VBLENDVPD": blend_by_sign, "VPTERNLOGD": ternary_logic, "VPTERNLOGQ": ternary_logic,
    **dict.fromkeys(("VBLENDMPS", "VBLENDMPD", *(f"VPBLENDM{lane}" for lane in _LANES)), blend_by_mask),
    "VPMADDUBSW": multiply_pairs, "VPMADDWD": multiply_pairs, "VPHADDD": add_pairs,
}  # fmt: skip
