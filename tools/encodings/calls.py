"""Instructions of every form that the assembler knows, with random operands."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Final, NamedTuple

from asmdnn import asm
from asmdnn.errors import InvalidArguments
from asmdnn.isa.encoder import branch_of, encoder_of
from asmdnn.isa.extensions import extension_forms, extension_names
from asmdnn.isa.memory_operand import Operand, Pointer, mem
from asmdnn.isa.operands import Register, register
from tests.isa.extension_calls import NAMES, STRING, operand_of
from tests.isa.forms import documented_forms, random_operands

Make = Callable[[Random], list[Operand]]
Change = Callable[[Operand, Random], Operand]
_GENERAL: Final = ("r8", "r16", "r32", "r64")
_WIDE: Final = (100, *2 * (30_000, -30_000), *2 * (2_000_000_000, -2_000_000_000))
_TRIES: Final = 12


class Call(NamedTuple):
    """An instruction and its bytes.  distance: of a jump, from its end."""

    mnemonic: str
    operands: tuple[Operand, ...]
    data: bytes
    distance: int | None = None


def calls_of_everything(seed: int, repetitions: int, part: int = 0, parts: int = 1) -> Iterator[Call]:
    """`repetitions` of every form under each of its names, or of every `parts`-th from `part` on."""
    random = Random(seed)
    for names, make in islice(_forms(), part, None, parts):
        for name in names:
            for number in range(repetitions):
                change = CHANGES[number % len(CHANGES)]
                if call := _call(name, make, random, change):
                    yield call
                elif change is _as_it_is:  # a form has not all of the encodings that its name has
                    break
    for name in extension_names():
        if STRING.fullmatch(name):
            yield Call(name, (), _encoded(name, []))
    for name in asm.instructions()[part::parts]:
        yield from _branches(name, random, repetitions)


def _forms() -> Iterator[tuple[list[str], Make]]:
    """Each form's names: the plain one, with VEX or EVEX asked for, and with LOCK."""
    for documented in documented_forms():
        first = documented.operand_types[:1]
        locked = [f"LOCK_{documented.mnemonic}"] if first and first[0].startswith("m") else []
        names = [documented.mnemonic, *_encodings(documented.mnemonic), *locked]
        yield [name for name in names if encoder_of(name)], partial(random_operands, documented)
    for name in NAMES:
        for form in extension_forms(name):
            yield [name, *_encodings(name)], partial(_operands_of, form.patterns)


def _operands_of(patterns: Sequence[str], random: Random) -> list[Operand]:
    return [operand_of(pattern, random) for pattern in patterns]


def _encodings(name: str) -> list[str]:
    if name[0] not in "VK" or name.endswith("VEX"):
        return []
    return [f"{name}_{kind}" for kind in ("VEX", "EVEX") if encoder_of(f"{name}_{kind}")]


def _call(name: str, make: Make, random: Random, change: Change) -> Call | None:
    """None if the form has no such encoding, or one that these operands are refused for."""
    for _ in range(_TRIES):
        operands = [change(operand, random) for operand in make(random)]
        try:
            return Call(name, tuple(operands), _encoded(name, operands))
        except InvalidArguments:
            continue
    return None


def _specially(operand: Operand, random: Random) -> Operand:
    """What has encodings of its own: accumulators, high bytes, shifts by one, segments."""
    if isinstance(operand, Register) and operand.kind in _GENERAL:
        high = operand.kind == "r8" and random.random() < 0.3
        return register("high8", random.randrange(4)) if high else register(operand.kind, 0)
    if isinstance(operand, Pointer) and not operand.form.mask and not operand.form.broadcast:
        form = operand.form
        where = {"index": form.index, "scale": form.scale, "size": form.size, "segment": random.choice(("fs", "gs"))}
        return mem(form.base, operand.displacement, **where)  # type: ignore[arg-type]
    return 1 if isinstance(operand, int) and random.random() < 0.5 else operand


def _by_accumulator(operand: Operand, random: Random) -> Operand:
    """al to rax, and immediates that fill the field."""
    if isinstance(operand, Register) and operand.kind in _GENERAL:
        return register(operand.kind, 0)
    return random.choice(_WIDE) if isinstance(operand, int) else operand


def _as_it_is(operand: Operand, random: Random) -> Operand:
    return operand


CHANGES: Final[tuple[Change, ...]] = (_as_it_is, _specially, _as_it_is, _by_accumulator)


def _encoded(name: str, operands: list[Operand]) -> bytes:
    encoder = encoder_of(name)
    assert encoder is not None
    return bytes(encoder.choose(operands).encode(operands))


def _branches(name: str, random: Random, repetitions: int) -> Iterator[Call]:
    """To a label so far away, in its short and its near form."""
    short, near = branch_of(name) or (None, None)
    for encode, bits in (short, 8), (near, 32):
        for _ in range(repetitions if encode else 0):
            limit = 1 << bits - 1
            distance = random.choice((0, 1, limit - 1, -limit, random.randrange(-limit, limit)))
            assert encode is not None
            yield Call(name, (), bytes(encode(distance)), distance)
