"""`asmdnn show`: a memory layout as text or as a picture."""

import re
from collections.abc import Sequence

from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import unknown
from asmdnn.errors import InvalidArguments, did_you_mean
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import dim_names
from asmdnn.show import draw, layout
from asmdnn.types import DATA_TYPES, DataType, f32

USAGE = f"""asmdnn show [--dt=TYPE] [--output=FILE.svg|FILE.png] FORMAT DIMS
FORMAT is a tag, such as nChw8c, aBcd8b, hwio or tnc, or strides in elements, such as 8x1; DIMS is such as 2x17x5x4.
Which index lies at which offset, block by block, with the padding marked; --output draws it instead.
TYPE is {", ".join(DATA_TYPES)}; f32 if it is left out.  PNG needs matplotlib."""

_NUMBERS = re.compile(r"[0-9]{1,18}(x[0-9]{1,18})*")
_BY_NUMBERS = "write sizes with x between them, such as 2x17x5x4"


def run(arguments: Sequence[str]) -> int:
    """Print the layout, or draw it.  Raises InvalidArguments for anything else than USAGE says."""
    if list(arguments) in (["-h"], ["--help"]):
        show_help(USAGE)
        return 0
    words, dtype, output = _read(arguments)
    if len(words) != 2:
        raise InvalidArguments(f"show: expected a format and dims, such as nChw8c 2x17x5x4, not '{' '.join(words)}'")
    tag, dims = words[0], _numbers("dims", words[1])
    if _NUMBERS.fullmatch(tag):
        desc, names = MemoryDesc(dims, dtype, strides=_numbers("strides", tag)), None
    else:
        desc = MemoryDesc(dims, dtype, tag)
        names = dim_names(tag) or "abcdefghijkl"[: len(dims)]
    if output is None:
        print(layout(desc, names))
    else:
        draw(desc, output, names)
        print(f"{desc} drawn in {output}")
    return 0


def _read(arguments: Sequence[str]) -> tuple[list[str], DataType, str | None]:
    words: list[str] = []
    dtype, output = f32, None
    for word in arguments:
        name, _, value = word.partition("=")
        if name == "--dt":
            if value not in DATA_TYPES:
                raise InvalidArguments(f"show: --dt={value} is no data type: {did_you_mean(value, DATA_TYPES)}")
            dtype = DATA_TYPES[value]
        elif name == "--output":
            if not value:
                raise InvalidArguments("show: --output needs a file: such as --output=layout.svg")
            output = value
        elif word.startswith("-"):
            raise unknown("show", word)
        else:
            words.append(word)
    return words, dtype, output


def _numbers(what: str, text: str) -> tuple[int, ...]:
    if not _NUMBERS.fullmatch(text):
        raise InvalidArguments(f"show: {what} '{text}': {_BY_NUMBERS}")
    return tuple(map(int, text.split("x")))
