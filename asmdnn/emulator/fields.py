"""Arithmetic without carries, and what hashes need: products of polynomials, Galois fields, SHA, AES, bit fields.

Sources: Intel manual, volume 2, and FIPS 180-4 and 197.  Judged by the CPU where it has them (tests/emulator).
"""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

WORD = (1 << 32) - 1
FIELD = 0x11B  # x^8 + x^4 + x^3 + x + 1


def carryless(a: int, b: int) -> int:
    """The product of two polynomials over one bit."""
    found = 0
    while b:
        found ^= a * (b & -b)
        b &= b - 1
    return found


def products(ops: Operands) -> Step:
    """VPCLMULQDQ: in each 128 bits, one half of operand 1 times one of operand 2."""
    imm = ops.immediate()
    a, b = ops.vector(1, np.uint64), ops.source(2, np.uint64, ops.vector_size, masked=False)

    def fill(out: Array) -> None:
        pairs = zip(a[imm & 1 :: 2].tolist(), b()[imm >> 4 & 1 :: 2].tolist(), strict=True)
        words = b"".join(carryless(x, y).to_bytes(16, "little") for x, y in pairs)
        out[:] = np.frombuffer(words, np.uint64)

    return ops.define(np.uint64, fill)


def field_product(a: int, b: int) -> int:
    """In the field of 256 elements that AES uses."""
    found = carryless(a, b)
    for bit in range(14, 7, -1):
        if found >> bit & 1:
            found ^= FIELD << bit - 8
    return found


def field_inverse(a: int) -> int:
    return next((b for b in range(256) if field_product(a, b) == 1), 0)


def multiply_bytes(ops: Operands) -> Step:
    """VGF2P8MULB."""
    a, b = ops.vector(1, np.uint8), ops.source(2, np.uint8, ops.vector_size, masked=False)

    def fill(out: Array) -> None:
        out[:] = [field_product(x, y) for x, y in zip(a.tolist(), b().tolist(), strict=True)]

    return ops.define(np.uint8, fill)


def affine(ops: Operands) -> Step:
    """VGF2P8AFFINEQB: each byte of operand 1, or its inverse, times an 8 x 8 matrix of bits, plus the immediate."""
    imm, inverted = ops.immediate(), "INV" in ops.name
    a, b = ops.vector(1, np.uint8), ops.source(2, np.uint64, ops.vector_size, masked=False)

    def fill(out: Array) -> None:
        matrices = b().view(np.uint8).reshape(-1, 8).tolist()
        found = []
        for i, x in enumerate(a.tolist()):
            x, rows = field_inverse(x) if inverted else x, matrices[i // 8]
            found.append(sum(((rows[7 - bit] & x).bit_count() & 1) << bit for bit in range(8)) ^ imm)
        out[:] = found

    return ops.define(np.uint8, fill)


def choose_bits(ops: Operands) -> Step:
    """VPMULTISHIFTQB: each byte is 8 bits of operand 2's qword, from the place that operand 1's byte says."""
    control, b = ops.vector(1, np.uint8), ops.source(2, np.uint64, ops.vector_size, masked=False)

    def fill(out: Array) -> None:
        qwords = np.repeat(b(), 8)
        up = (control & 63).astype(np.uint64)
        out[:] = (qwords >> up | qwords << (np.uint64(64) - up) % np.uint64(64)).astype(np.uint8)

    return ops.define(np.uint8, fill)


def _rotated(x: int, by: int) -> int:
    return (x >> by | x << 32 - by) & WORD


def sha256_rounds(ops: Operands) -> Step:
    """SHA256RNDS2: two rounds on (c, d, g, h) in operand 0 and (a, b, e, f) in operand 1, message in xmm0."""
    state, others, message = ops.vector(0, np.uint32), ops.source(1, np.uint32, 16), ops.cpu.vector(0, np.uint32, 2)

    def fill(out: Array) -> None:
        f, e, b, a = others().tolist()
        h, g, d, c = state.tolist()
        for word in message.tolist():
            choice = e & f ^ ~e & g
            first = h + choice + (_rotated(e, 6) ^ _rotated(e, 11) ^ _rotated(e, 25)) + word
            second = (a & b ^ a & c ^ b & c) + (_rotated(a, 2) ^ _rotated(a, 13) ^ _rotated(a, 22))
            a, b, c, d, e, f, g, h = first + second & WORD, a, b, c, first + d & WORD, e, f, g
        out[:] = [f, e, b, a]

    return ops.define(np.uint32, fill, 16)


def sha256_first(ops: Operands) -> Step:
    """SHA256MSG1: each word plus the small sigma 0 of the one after it."""
    words, following = ops.vector(0, np.uint32), ops.source(1, np.uint32, 16)

    def fill(out: Array) -> None:
        w = [*words.tolist(), following().tolist()[0]]
        out[:] = [w[i] + (_rotated(w[i + 1], 7) ^ _rotated(w[i + 1], 18) ^ w[i + 1] >> 3) & WORD for i in range(4)]

    return ops.define(np.uint32, fill, 16)


def sha256_second(ops: Operands) -> Step:
    """SHA256MSG2: each word plus the small sigma 1 of the one two before it."""
    words, before = ops.vector(0, np.uint32), ops.source(1, np.uint32, 16)

    def fill(out: Array) -> None:
        w = before().tolist()[2:]
        for x in words.tolist():
            last = w[-2]
            w.append(x + (_rotated(last, 17) ^ _rotated(last, 19) ^ last >> 10) & WORD)
        out[:] = w[2:]

    return ops.define(np.uint32, fill, 16)


TABLE: dict[str, Callable[[Operands], Step]] = {
    "VPCLMULQDQ": products, "VGF2P8MULB": multiply_bytes, "VGF2P8AFFINEQB": affine, "VGF2P8AFFINEINVQB": affine,
    "VPMULTISHIFTQB": choose_bits, "SHA256RNDS2": sha256_rounds, "SHA256MSG1": sha256_first,
    "SHA256MSG2": sha256_second,
}  # fmt: skip
