"""What each instruction does, by mnemonic: the tables of the files that say so, and the forms of SSE."""

from collections.abc import Callable
from typing import Final

from asmdnn.emulator import (
    aes,
    arithmetic,
    bits,
    control,
    conversions,
    counts,
    dots,
    elements,
    fields,
    fma,
    halves,
    integers,
    legacy,
    masks,
    moves,
    narrow,
    packing,
    scalars,
    shuffles,
    tiles,
    wide,
)
from asmdnn.emulator.operands import Operands, Step

MODULES: Final = (
    integers, bits, wide, control, moves, arithmetic, narrow, fma, halves, dots, tiles, shuffles, elements,
    conversions, masks, counts, scalars, fields, aes, packing,
)  # fmt: skip
_VEX: Final = {name: build for module in MODULES for name, build in module.TABLE.items()}
_SSE: Final = legacy.legacy_table(_VEX)
SEMANTICS: Final[dict[str, Callable[[Operands], Step]]] = _VEX | _SSE


def known_instructions() -> dict[str, tuple[str, ...]]:
    """The mnemonics that are emulated, by the files that say what they do; "legacy" has those of SSE."""
    found = {module.__name__.rpartition(".")[2]: tuple(sorted(module.TABLE)) for module in MODULES}
    return found | {"legacy": tuple(sorted(_SSE.keys() - _VEX.keys()))}
