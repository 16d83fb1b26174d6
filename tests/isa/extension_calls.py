"""Random operands for the forms of instructions that PeachPy lacks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import mem, rd_sae, register, rn_sae, ru_sae, rz_sae, sae
from asmdnn.isa.encoder import encoder_of
from asmdnn.isa.extensions import extension_branch, extension_names
from asmdnn.isa.forms import FIXED, Form
from asmdnn.isa.memory_operand import Operand
from tests.isa.forms import pointer_near_edges

REPETITIONS = 20  # random operands of a form
STRING = re.compile("((REP|REPE|REPNE)_)?(MOVS|CMPS|STOS|LODS|SCAS|INS|OUTS)[BWDQ]|XLATB")  # operands nobody writes
NAMES = tuple(dict.fromkeys(n for n in extension_names() if not STRING.fullmatch(n) and not extension_branch(n)))
SPECIAL: Mapping[str, tuple[Operand, ...]] = {
    "{er}": (rn_sae, rd_sae, ru_sae, rz_sae), "{sae}": (sae,), "imm8": (0, 1, 127, 128, 255, -1, -128),
    "imm16": (0, 1, 255, 256, 32767, 32768, 65535, -1, -32768),
    "imm64": (0, 1, -1, 1 << 31, (1 << 63) - 1, -1 << 63, 0x1234_5678_9ABC_DEF0),
}  # fmt: skip
NUMBERS: Mapping[str | None, Sequence[int]] = {
    "<16": range(16), ">15": range(16, 32), "+1": range(0, 8, 2), "-cs": (0, 2, 3, 4, 5),
}  # fmt: skip
FULL = ("xmm", "ymm", "zmm")


def encode(mnemonic: str, *operands: Operand) -> bytes:
    encoder = encoder_of(mnemonic)
    assert encoder is not None
    return bytes(encoder.choose(operands).encode(operands))


def operand_of(pattern: str, random: Random) -> Operand:
    """One of a pattern's alternatives, with registers, displacements and immediates at and around the edges."""
    chosen = random.choice(pattern.split("/"))
    if chosen in SPECIAL:
        return random.choice(SPECIAL[chosen])
    if chosen in FIXED:
        return register(*FIXED[chosen])
    if chosen == "sib":
        base = register("r64", random.randrange(16))
        return mem(base, random.choice((0, 64, -128, 1 << 20)), index=register("r64", 5), scale=4)
    if found := re.fullmatch(r"m(\d*)(\{k\})?", chosen):
        size = int(found[1] or 8) // 8
        sized = size if found[1] and size in (1, 2, 4, 8, 16, 32, 64) else 0
        pointer = pointer_near_edges(random, size, size=sized)
        return pointer.masked(register("k", random.randrange(1, 8))) if found[2] and random.random() < 0.7 else pointer
    if found := re.fullmatch(r"m(\d+)\{1to(\d+)\}", chosen):
        return pointer_near_edges(random, int(found[1]) // 8, size=int(found[1]) // 8, broadcast=int(found[2]))
    return register_of(chosen, random)


def register_of(pattern: str, random: Random) -> Operand:
    found = re.fullmatch(r"(r16|r32|r64|seg|k|[xyzt]mm)(<16|>15|\+1|-cs)?(\{k\})?(\{z\})?", pattern)
    assert found, pattern
    kind, range_, masked, zeroed = found.groups()
    count = 8 if kind in ("k", "tmm") else 32 if kind in FULL else 16
    numbers = NUMBERS.get(range_, range(6 if kind == "seg" else count))
    reg = register(kind, random.choice(numbers))
    if not masked or random.random() < 0.3:
        return reg
    mask = register("k", random.randrange(1, 8))
    return reg.zeroed(mask) if zeroed and random.random() < 0.5 else reg.masked(mask)


def random_calls(form: Form, random: Random) -> Iterator[tuple[Operand, ...]]:
    """Operands that the processor takes: those of tile products and complex ones must differ."""
    found = 0
    while found < (REPETITIONS if form.patterns else 1):
        operands = tuple(operand_of(pattern, random) for pattern in form.patterns)
        try:
            encode(form.mnemonic, *operands)
        except InvalidArguments as error:
            assert re.search("needs (registers that all differ|a target that is none)", str(error)), (form, operands)
            continue
        found += 1
        yield operands
