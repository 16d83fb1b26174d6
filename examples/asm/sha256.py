"""SHA-256 by the CPU's own instructions: 64 rounds, two an instruction.  (FIPS 180-4; Intel manual, SHA extensions)

python -m examples.asm.sha256
"""

import hashlib
from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, mem
from examples.asm.table import Rows, microseconds, show
from examples.command import command


def roots(power: int, count: int) -> list[int]:
    """The first 32 bits after the point of the square (2) or cube (3) roots of the first primes: FIPS 180-4."""
    primes = [p for p in range(2, 312) if all(p % d for d in range(2, int(p**0.5) + 1))][:count]
    return [_root(p << 32 * power, power) & 0xFFFFFFFF for p in primes]


def _root(value: int, power: int) -> int:
    low, high = 0, 1 << 48
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= value else (low, middle)
    return low


START: Final = np.array(roots(2, 8), np.uint32)
ROUNDS: Final = np.array(roots(3, 64), np.uint32)


@asm.function(
    "void compress(uint32_t *state, const uint8_t *blocks, size_t n)",
    isa="avx2+sha",
    reads={"state": "32", "blocks": "64*n"},
    writes={"state": "32"},
)
def compress(f: FunctionBuilder, state: Register, blocks: Register, n: Register) -> None:
    """Takes n blocks of 64 bytes into the state of 8 words.

    The instructions hold the state as (a, b, e, f) and (c, d, g, h), highest word first.  SHA256RNDS2 reads two words
    of message plus constant from xmm0; SHA256MSG1 and SHA256MSG2 make the next four words of the message.
    """
    sums = f.vectors().claim(asm.register("ymm", 0), "words + constants").xmm
    names = ("abef", "cdgh", "abef before", "cdgh before", "byte order", "spare")
    abef, cdgh, old_abef, old_cdgh, swap, spare = (f.vectors().take(name).xmm for name in names)
    words = [reg.xmm for reg in f.vectors().take("words", 4)]
    constants = f.table(ROUNDS)
    f.MOVDQA(swap, f.const(bytes(i ^ 3 for i in range(16)), size=16))
    f.MOVDQU(spare, mem(state, size=16))  # d c b a, highest word first
    f.MOVDQU(cdgh, mem(state, 16, size=16))  # h g f e
    f.PSHUFD(spare, spare, 0xB1)  # c d a b
    f.PSHUFD(cdgh, cdgh, 0x1B)  # e f g h
    f.MOVDQA(abef, spare)
    f.PALIGNR(abef, cdgh, 8)
    f.PBLENDW(cdgh, spare, 0xF0)
    with f.steps(n, 1, "blocks"):
        f.MOVDQA(old_abef, abef)
        f.MOVDQA(old_cdgh, cdgh)
        for four in range(16):
            now = words[four % 4]
            if four < 4:
                f.MOVDQU(now, mem(blocks, 16 * four, size=16))
                f.PSHUFB(now, swap)
            else:
                before, last = words[(four - 1) % 4], words[(four - 2) % 4]
                f.SHA256MSG1(now, words[(four - 3) % 4])
                f.MOVDQA(spare, before)
                f.PALIGNR(spare, last, 4)
                f.PADDD(now, spare)
                f.SHA256MSG2(now, before)
            f.MOVDQA(sums, mem(constants, 16 * four, size=16))
            f.PADDD(sums, now)
            f.SHA256RNDS2(cdgh, abef, sums)
            f.PSHUFD(sums, sums, 0x0E)
            f.SHA256RNDS2(abef, cdgh, sums)
        f.PADDD(abef, old_abef)
        f.PADDD(cdgh, old_cdgh)
        f.ADD(blocks, 64)
    f.PSHUFD(spare, abef, 0x1B)  # f e b a
    f.PSHUFD(cdgh, cdgh, 0xB1)  # d c h g
    f.MOVDQA(abef, spare)
    f.PBLENDW(abef, cdgh, 0xF0)
    f.PALIGNR(cdgh, spare, 8)
    f.MOVDQU(mem(state, size=16), abef)
    f.MOVDQU(mem(state, 16, size=16), cdgh)
    f.ret()


def sha256(data: bytes) -> bytes:
    """The digest, 32 bytes."""
    padded = data + b"\x80" + bytes(-(len(data) + 9) % 64) + (8 * len(data)).to_bytes(8, "big")
    state: np.ndarray[Any, Any] = START.copy()
    compress(state, np.frombuffer(padded, np.uint8), len(padded) // 64)
    return state.astype(">u4").tobytes()


def main() -> None:
    print(compress.prove(n=range(20)))
    if not compress.runs_here:
        print("this CPU has no SHA instructions")
        return
    random = np.random.default_rng(0)
    for size in (*range(130), 1000, 4096):
        data = random.bytes(size)
        assert sha256(data) == hashlib.sha256(data).digest(), size
    data = random.bytes(1 << 16)
    blocks, state = np.frombuffer(data, np.uint8), START.copy()
    rows: Rows = {
        "this": compress.bench(state, blocks, blocks.size // 64),
        "this, with padding, from Python": microseconds(lambda: sha256(data)),
        "hashlib (OpenSSL)": microseconds(lambda: hashlib.sha256(data).digest()),
    }
    show(f"SHA-256 of {len(data)} bytes", rows, len(data))


if __name__ == "__main__":
    command(main, __doc__)
