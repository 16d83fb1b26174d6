"""Whether bytes are UTF-8: three tables of 16 in registers find every mistake of two neighbouring bytes at once.

The method is Keiser and Lemire's, "Validating UTF-8 In Less Than One Instruction Per Byte" (2021), that of simdutf.

python -m examples.asm.utf8
"""

from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE: Final = "uint64_t valid(const uint8_t *text, size_t n)"

# What two neighbours may be wrong by; each of three tables says which of these a half byte allows.
TOO_SHORT, TOO_LONG, OVERLONG_3, TOO_LARGE, SURROGATE, OVERLONG_2, LARGE_OR_OVERLONG_4, TWO_CONTINUE = (
    1 << bit for bit in range(8)
)
ANY_LOW: Final = TOO_SHORT | TOO_LONG | TWO_CONTINUE


def first_high(half: int) -> int:
    """By the upper half of the first byte."""
    starts = {
        0xC: TOO_SHORT | OVERLONG_2,
        0xD: TOO_SHORT,
        0xE: TOO_SHORT | OVERLONG_3 | SURROGATE,
        0xF: TOO_SHORT | TOO_LARGE | LARGE_OR_OVERLONG_4,
    }
    return TOO_LONG if half < 8 else TWO_CONTINUE if half < 12 else starts[half]


def first_low(half: int) -> int:
    """By its lower half."""
    found = ANY_LOW | OVERLONG_2 * (half < 2) | TOO_LARGE * (half > 3) | LARGE_OR_OVERLONG_4 * (half > 4)
    return found | (OVERLONG_3 | LARGE_OR_OVERLONG_4) * (half == 0) | SURROGATE * (half == 0xD)


def second_high(half: int) -> int:
    """By the upper half of the second byte: 8 to B continue."""
    if not 8 <= half < 12:
        return TOO_SHORT
    found = TOO_LONG | OVERLONG_2 | TWO_CONTINUE
    found |= OVERLONG_3 | LARGE_OR_OVERLONG_4 if half == 8 else TOO_LARGE
    return found | OVERLONG_3 * (half == 9) | SURROGATE * (half > 9)


TABLES: Final = [bytes(map(table, range(16))) for table in (first_high, first_low, second_high)]
LEAST_OF_THREE, LEAST_OF_FOUR, CONTINUES = 0xE0, 0xF0, 0x80


@asm.function(PROTOTYPE, reads={"text": "n"})
def valid(f: FunctionBuilder, text: Register, n: Register) -> None:
    """1 if text[0:n] is UTF-8, else 0."""
    names = ("bytes", "bytes before", "mistakes", "unfinished", "0x0f", "first, upper", "first, lower", "second, upper")
    x, before, wrong, unfinished, half, *tables = (f.vectors().take(name) for name in names)
    for held, data in zip((half, *tables), (b"\x0f" * 16, *TABLES), strict=True):
        f.VBROADCASTI128(held, f.const(data, size=16))
    for held in (before, wrong, unfinished):
        f.VPXOR(held, held, held)
    highest = f.const(bytes([255] * 29 + [LEAST_OF_FOUR - 1, LEAST_OF_THREE - 1, 0xC0 - 1]), size=32)

    def block() -> None:
        """The next 32 bytes, which are in x."""
        find_mistakes(f, x, before, wrong, half, tables)
        f.VPSUBUSB(unfinished, x, highest)  # not 0 where one of the last three bytes starts more than there is
        f.VMOVDQA(before, x)

    not_ascii = f.gp.take("bytes that are not ASCII")
    with f.steps(n, 64, "64 bytes"):
        f.VMOVDQU(x, mem(text, size=32))
        with f.vectors().taken("all bytes") as both:
            f.VPOR(both, x, mem(text, 32, size=32))
            f.VPMOVMSKB(low32(not_ascii), both)
        f.TEST(low32(not_ascii), low32(not_ascii))
        with f.either("Z") as (ascii_only, other):
            with ascii_only:
                f.VPOR(wrong, wrong, unfinished)
                f.VPXOR(unfinished, unfinished, unfinished)
                f.VMOVDQU(before, mem(text, 32, size=32))
            with other:
                block()
                f.VMOVDQU(x, mem(text, 32, size=32))
                block()
        f.ADD(text, 64)
    with f.steps(n, 32, "32 bytes"):
        f.VMOVDQU(x, mem(text, size=32))
        block()
        f.ADD(text, 32)
    load_rest(f, x, text, n)
    block()  # zeros after the end: what is unfinished there is too short
    answer = f.gp.take("answer")
    f.XOR(low32(answer), low32(answer))
    f.VPTEST(wrong, wrong)
    f.SETZ(asm.register("r8", answer.id))
    f.ret(answer)


def find_mistakes(
    f: FunctionBuilder, x: Register, before: Register, wrong: Register, half: Register, tables: list[Register]
) -> None:
    """Adds those of 32 bytes to `wrong`: what all three tables allow, and what must continue and does not."""
    shifted, first, found, spare = f.vectors().take("shifted in, first, found, spare", 4)
    f.VPERM2I128(shifted, before, x, 0x21)  # the 16 bytes before each half
    f.VPALIGNR(first, x, shifted, 15)
    f.VPSRLW(spare, first, 4)
    f.VPAND(spare, spare, half)
    f.VPSHUFB(found, tables[0], spare)
    f.VPAND(first, first, half)
    f.VPSHUFB(first, tables[1], first)
    f.VPAND(found, found, first)
    f.VPSRLW(spare, x, 4)
    f.VPAND(spare, spare, half)
    f.VPSHUFB(spare, tables[2], spare)
    f.VPAND(found, found, spare)
    f.VPALIGNR(first, x, shifted, 14)
    f.VPSUBUSB(first, first, f.const(bytes([LEAST_OF_THREE - CONTINUES] * 32), size=32))
    f.VPALIGNR(spare, x, shifted, 13)
    f.VPSUBUSB(spare, spare, f.const(bytes([LEAST_OF_FOUR - CONTINUES] * 32), size=32))
    f.VPOR(first, first, spare)
    f.VPAND(first, first, f.const(bytes([CONTINUES] * 32), size=32))
    f.VPXOR(found, found, first)
    f.VPOR(wrong, wrong, found)
    for reg in (shifted, first, found, spare):
        f.vectors().free(reg)


def load_rest(f: FunctionBuilder, x: Register, text: Register, n: Register) -> None:
    """The last n < 32 bytes with zeros after them: whole dwords under a mask, then what is left as one dword."""
    v, lane, word = f.vector("f32"), f.vectors().take("its lane"), f.vectors().take("last dword")
    dwords, last, byte, bits = (f.gp.take(name) for name in ("dwords", "last dword", "last byte", "bits before it"))
    f.MOV(dwords, n)
    f.SHR(dwords, 2)
    with v.first(dwords) as lanes:
        lanes.load(x, mem(text))
    f.VMOVD(lane.xmm, low32(dwords))
    f.VPBROADCASTD(lane, lane.xmm)
    f.VPCMPEQD(lane, lane, f.const(np.arange(8, dtype=np.int32), size=32))
    f.XOR(low32(last), low32(last))
    f.TEST(n, 2)
    with f.when("NZ"):
        f.MOVZX(low32(last), mem(text, index=dwords, scale=4, size=2))
    f.TEST(n, 1)
    with f.when("NZ"):
        f.MOVZX(low32(byte), mem(text, -1, index=n, size=1))
        f.MOV(bits, n)
        f.AND(low32(bits), 2)
        f.SHL(low32(bits), 3)
        f.SHLX(low32(byte), low32(byte), low32(bits))
        f.OR(low32(last), low32(byte))
    f.VMOVD(word.xmm, low32(last))
    f.VPBROADCASTD(word, word.xmm)
    f.VPAND(word, word, lane)
    f.VPOR(x, x, word)


def reference(text: Any, n: int) -> int:
    try:
        text.tobytes().decode()
    except UnicodeDecodeError:
        return 0
    return 1


def letters(rng: np.random.Generator, dtype: Any, size: int) -> Any:
    """Text of one to four bytes a letter, in half of the cases with a byte changed."""
    text = "".join(chr(rng.choice((65, 0xE9, 0x20AC, 0x1F600)) + int(rng.integers(9))) for _ in range(size))
    data = np.zeros(size, np.uint8)
    whole = text.encode()[:size]
    while whole and reference(np.frombuffer(whole, np.uint8), 0) == 0:
        whole = whole[:-1]
    data[: len(whole)] = np.frombuffer(whole, np.uint8)
    if size and rng.random() < 0.5:
        data[rng.integers(size)] = rng.choice((0x80, 0xC0, 0xE0, 0xED, 0xF0, 0xF4, 0xF8, 0xFF, 0x20, 0xA0))
    return data


IN_C: Final = """
for (size_t i = 0; i < n;) {
    uint8_t c = text[i++];
    int more = c < 0x80 ? 0 : c < 0xc2 ? -1 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : -1;
    if (more < 0 || n - i < (size_t)more) return 0;
    uint32_t v = more ? c & (0x3f >> more) : c;
    for (int k = 0; k < more; k++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        v = v << 6 | (text[i++] & 0x3f);
    }
    if (more == 2 && (v < 0x800 || (v >= 0xd800 && v < 0xe000))) return 0;
    if (more == 3 && (v < 0x10000 || v > 0x10ffff)) return 0;
}
return 1;"""


def main() -> None:
    print(valid.prove(n=range(140)))
    print(valid.compare(reference, cases=1500, n=range(140), draw=letters))
    in_c = compiled(PROTOTYPE, IN_C)
    for title, line in (("English", "plain words of a text, "), ("Greek", "λέξεις ενός κειμένου, ")):
        data = (line * 400).encode()
        text = np.frombuffer(data, np.uint8)
        rows: Rows = {"this": valid.bench(text, text.size)}
        if in_c:
            rows["gcc -O3"] = in_c.bench(text, text.size)
        rows["bytes.decode, which also converts"] = microseconds(data.decode)
        show(f"is it UTF-8: {text.size} bytes of {title}", rows, text.size)


if __name__ == "__main__":
    command(main, __doc__)
