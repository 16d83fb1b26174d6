"""What the tables of instructions say: names, and the operands that each takes."""

from typing import Final

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.isa.encoder import mnemonics, written_forms

NO_INSTRUCTIONS: Final = ("ALIGN", "LABEL", "RETURN")  # PeachPy's own words


def instructions(beginning: str = "") -> list[str]:
    """The mnemonics that start so, in alphabetical order: `asm.instructions("VPSHUF")`.

    beginning: the first letters, in capitals or not; by default all mnemonics are listed.
    """
    return [name for name in sorted(mnemonics()) if name.startswith(beginning.upper()) and name not in NO_INSTRUCTIONS]


def forms(mnemonic: str) -> list[str]:
    """The operands that an instruction takes, a text for each form, as in the message for wrong ones.

    mnemonic: its name in capitals, such as "VPSHUFB".  Raises InvalidArguments for an unknown one, with the nearest.
    """
    found = written_forms(mnemonic) if isinstance(mnemonic, str) else []
    if not found and mnemonic in mnemonics():
        return [f"{mnemonic}(label)"]  # what is left are jumps
    if not found:
        near = resembling(mnemonic, mnemonics()) or "."
        raise InvalidArguments(f"forms({shown(mnemonic)}): no such instruction{near}")
    return found
