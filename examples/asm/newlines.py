"""How many bytes of a text are a newline: comparisons give -1, and 255 of them fit a byte before sums are widened.

python -m examples.asm.newlines
"""

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

MOST_IN_BYTES = 255


@asm.function("uint64_t count(const uint8_t *text, size_t n, uint8_t byte)", reads={"text": "n"})
def count(f: FunctionBuilder, text: Register, n: Register, byte: Register) -> None:
    """The bytes of text[0:n] that equal `byte`."""
    wanted, sums, zero, total, found = (f.vectors().take(name) for name in ("wanted", "sums", "0", "total", "found"))
    f.VMOVD(wanted.xmm, low32(byte))
    f.VPBROADCASTB(wanted, wanted.xmm)
    f.VPXOR(zero, zero, zero)
    f.VPXOR(total, total, total)
    vectors, left, all_in = f.gp.take("vectors"), f.gp.take("vectors until sums are full"), f.gp.take("total")
    f.MOV(vectors, n)
    f.SHR(vectors, 5)
    f.AND(n, 31)
    with f.loop("sums") as (_, end):
        f.TEST(vectors, vectors)
        f.JZ(end)
        f.MOV(left, vectors)
        f.MOV(low32(all_in), MOST_IN_BYTES)
        f.CMP(left, all_in)
        f.CMOVA(left, all_in)
        f.SUB(vectors, left)
        f.VPXOR(sums, sums, sums)
        with f.steps(left, 1, "vectors"):
            f.VPCMPEQB(found, wanted, mem(text))
            f.VPSUBB(sums, sums, found)
            f.ADD(text, 32)
        f.VPSADBW(sums, sums, zero)
        f.VPADDQ(total, total, sums)
    f.VEXTRACTI128(sums.xmm, total, 1)
    f.VPADDQ(total.xmm, total.xmm, sums.xmm)
    f.VPSRLDQ(sums.xmm, total.xmm, 8)
    f.VPADDQ(total.xmm, total.xmm, sums.xmm)
    f.VMOVQ(all_in, total.xmm)
    one = f.gp.take("1")
    with f.steps(n, 1, "bytes"):
        f.XOR(low32(one), low32(one))
        f.CMP(mem(text, size=1), asm.register("r8", byte.id))
        f.SETE(asm.register("r8", one.id))
        f.ADD(all_in, one)
        f.ADD(text, 1)
    f.ret(all_in)


def main() -> None:
    print(count.prove(n=[*range(70), 8159, 8160, 8191, 8192, 8193], byte=10))
    reference = lambda text, n, byte: int((text == byte).sum())  # noqa: E731
    print(count.compare(reference, cases=300, n=[*range(70), 8159, 8192, 20_000], byte=range(127)))
    text = np.frombuffer(b"a line of a text, and another\n" * 4000, np.uint8)
    data = text.tobytes()
    in_c = compiled(count.prototype, "uint64_t s = 0; for (size_t i = 0; i < n; i++) s += text[i] == byte; return s;")
    rows: Rows = {"this": count.bench(text, text.size, 10)}
    if in_c:
        rows["gcc -O3"] = in_c.bench(text, text.size, 10)
    rows["bytes.count"] = microseconds(lambda: data.count(b"\n"))
    rows["numpy: (text == 10).sum()"] = microseconds(lambda: (text == 10).sum())
    show(f"newlines in {text.size} bytes", rows, text.size)


if __name__ == "__main__":
    command(main, __doc__)
