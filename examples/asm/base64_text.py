"""Base64: three bytes become four letters.  AVX2 by shuffles and products, AVX-512 by its byte instructions.

The AVX2 code follows Mula and Lemire, "Faster Base64 Encoding and Decoding Using AVX2 Instructions" (2018), the other
"Base64 encoding and decoding at almost the speed of a memory copy" (2019).

python -m examples.asm.base64_text
"""

import base64
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE: Final = "void encode(const uint8_t *data, size_t n, uint8_t *text)"
READS: Final = {"data": "n"}
WRITES: Final = {"text": "(n + 2) // 3 * 4"}
LETTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TWICE_EACH: Final = [byte + 3 * group for group in range(16) for byte in (1, 0, 2, 1)]  # each dword has its three bytes


@asm.function(PROTOTYPE, reads=READS, writes=WRITES)
def by_products(f: FunctionBuilder, data: Register, n: Register, text: Register) -> None:
    """24 bytes at a time; multiplications move fields of six bits by different distances."""
    three, high, low, less = (f.vectors().take(name) for name in ("bytes", "fields 0, 2", "fields 1, 3", "letters"))

    def everywhere(name: str, word: int) -> Register:
        held: Register = f.vectors().take(name)
        f.VPBROADCASTD(held, f.const(np.uint32(word), size=4))
        return held

    high_bits, high_move = everywhere("fields 0, 2", 0x0FC0FC00), everywhere("right by 10 and 6", 0x04000040)
    low_bits, low_move = everywhere("fields 1, 3", 0x003F03F0), everywhere("left by 4 and 8", 0x01000010)
    fifty_one, after_z, thirteen = (everywhere(f"{byte}", byte * 0x01010101) for byte in (51, 26, 13))
    order, offsets = f.vectors().take("order"), f.vectors().take("distance to the letter")
    f.VMOVDQU(order, f.const(bytes(TWICE_EACH[:16] * 2), size=32))
    by_class = [71, *[-4] * 10, -19, -16, 65, 0, 0]  # a to z, 0 to 9, +, /, A to Z
    f.VMOVDQU(offsets, f.const(np.array(by_class * 2, np.int8), size=32))
    with _enough(f, n, 28) as again:  # 28 bytes are read for 24
        f.VMOVDQU(three.xmm, mem(data, size=16))
        f.VINSERTI128(three, three, mem(data, 12, size=16), 1)
        f.VPSHUFB(three, three, order)
        f.VPAND(high, three, high_bits)
        f.VPMULHUW(high, high, high_move)
        f.VPAND(low, three, low_bits)
        f.VPMULLW(low, low, low_move)
        f.VPOR(three, high, low)
        f.VPSUBUSB(high, three, fifty_one)  # 0 for letters, 1 to 12 for what comes after z
        f.VPCMPGTB(less, after_z, three)
        f.VPAND(less, less, thirteen)
        f.VPOR(high, high, less)
        f.VPSHUFB(high, offsets, high)
        f.VPADDB(three, three, high)
        f.VMOVDQU(mem(text, size=32), three)
        f.ADD(data, 24)
        f.ADD(text, 32)
        f.SUB(n, 24)
        f.JMP(again)
    _threes(f, data, n, text)
    f.ret()


def _enough(f: FunctionBuilder, n: Register, needed: int) -> Any:
    """A loop that goes on while n >= needed."""
    start, end = f.label("vectors"), f.label("after vectors")

    class Loop:
        def __enter__(self) -> Any:
            f.bind(start)
            f.CMP(n, needed)
            f.JB(end)
            return start

        def __exit__(self, *_: object) -> None:
            f.bind(end)

    return Loop()


def _threes(f: FunctionBuilder, data: Register, n: Register, text: Register) -> None:
    """The rest: three bytes at a time, and one or two with padding."""
    letters = f.table(LETTERS)
    word, field = f.gp.take("bytes"), f.gp.take("field")
    three = asm.register("r8", field.id)

    def letter(place: int) -> None:
        f.MOV(low32(field), low32(word))
        f.SHR(low32(field), 18 - 6 * place)
        f.AND(low32(field), 63)
        f.MOV(three, mem(letters, index=field, size=1))
        f.MOV(mem(text, place, size=1), three)

    def byte(place: int) -> None:
        f.MOVZX(low32(field), mem(data, place, size=1))
        f.SHL(low32(field), 16 - 8 * place)
        f.OR(low32(word), low32(field))

    with f.steps(n, 3, "threes"):
        f.XOR(low32(word), low32(word))
        for place in range(3):
            byte(place)
        for place in range(4):
            letter(place)
        f.ADD(data, 3)
        f.ADD(text, 4)
    for left in (1, 2):
        f.CMP(n, left)
        with f.when("E"):
            f.XOR(low32(word), low32(word))
            for place in range(left):
                byte(place)
            for place in range(left + 1):
                letter(place)
            for place in range(left + 1, 4):
                f.MOV(mem(text, place, size=1), ord("="))


@asm.function(PROTOTYPE, isa="avx512_core+avx512_vbmi", reads=READS, writes=WRITES)
def by_bytes(f: FunctionBuilder, data: Register, n: Register, text: Register) -> None:
    """48 bytes at a time: a permutation, six bits of each byte's place by one shift, a table of 64 in a register."""
    three, order, places, letters = (f.vectors().take(name) for name in ("bytes", "order", "shifts", "letters"))
    ones, read, written = f.gp.take("ones"), f.masks.take("bytes"), f.masks.take("letters")
    f.VMOVDQU8(order, f.const(bytes(TWICE_EACH), size=64))
    f.VMOVDQU8(places, f.const(bytes((10, 4, 22, 16, 42, 36, 54, 48) * 8), size=64))
    f.VMOVDQU8(letters, f.const(LETTERS, size=64))

    def encoded() -> None:
        f.VPERMB(three, order, three)
        f.VPMULTISHIFTQB(three, places, three)
        f.VPERMB(three, three, letters)

    f.MOV(ones, (1 << 48) - 1)
    f.KMOVQ(read, ones)
    with f.steps(n, 48, "vectors"):
        f.VMOVDQU8(three.zeroed(read), mem(data, size=64))
        encoded()
        f.VMOVDQU8(mem(text, size=64), three)
        f.ADD(data, 48)
        f.ADD(text, 64)
    rest, padding = f.gp.take("letters"), f.gp.take("padding")
    f.MOV(ones, -1)
    f.BZHI(padding, ones, n)
    f.KMOVQ(read, padding)
    f.LEA(rest, mem(n, 2))
    f.IMUL(rest, rest, 0x5556)  # of a third, in 1 / 65536
    f.SHR(rest, 16)
    f.LEA(padding, mem(rest, index=rest, scale=2))
    f.SUB(padding, n)
    f.SHL(rest, 2)
    f.BZHI(ones, ones, rest)
    f.KMOVQ(written, ones)
    f.VMOVDQU8(three.zeroed(read), mem(data, size=64))
    encoded()
    f.VMOVDQU8(mem(text, size=64).masked(written), three)
    f.ADD(text, rest)
    for byte in (1, 2):
        f.CMP(padding, byte)
        with f.when("AE"):
            f.MOV(mem(text, -byte, size=1), ord("="))
    f.ret()


def reference(data: Any, n: int, text: Any) -> None:
    text[:] = np.frombuffer(base64.b64encode(data.tobytes()), np.uint8)


def any_bytes(rng: np.random.Generator, dtype: Any, size: int) -> Any:
    return rng.integers(0, 256, size)


IN_C: Final = """
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
"""
IN_C_BODY: Final = """for (; n >= 3; n -= 3, data += 3, text += 4) {
    uint32_t w = data[0] << 16 | data[1] << 8 | data[2];
    for (int i = 0; i < 4; i++) text[i] = letters[w >> (18 - 6 * i) & 63];
}"""


def main() -> None:
    sizes = [*range(130), 3000]
    data: Any = np.random.default_rng(0).integers(0, 256, 3072, np.uint8)
    text = np.zeros(4096, np.uint8)
    rows: Rows = {}
    for name, function in (("this, AVX-512 VBMI", by_bytes), ("this, AVX2", by_products)):
        print(function.prove(n=sizes))
        if function.runs_here:
            function.compare(reference, cases=300, n=sizes, draw=any_bytes)
            rows[name] = function.bench(data, data.size, text)
    in_c, bytes_of_data = compiled(PROTOTYPE, IN_C_BODY, IN_C), bytes(data)
    if in_c:
        rows["gcc -O3"] = in_c.bench(data, data.size, text)
    for name, module in (("libbase64", "pybase64"), ("simdutf", "fastpybase64")):
        if find_spec(module):
            encode = import_module(module).b64encode
            rows[f"{name} ({module}), from Python"] = microseconds(lambda encode=encode: encode(bytes_of_data))
    rows["base64 of Python"] = microseconds(lambda: base64.b64encode(bytes_of_data))
    show(f"base64 of {data.size} bytes", rows, data.size)


if __name__ == "__main__":
    command(main, __doc__)
