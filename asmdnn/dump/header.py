"""A C header of a kernel: its frame as a struct, its prototype, and what it promises."""

import textwrap
from collections.abc import Iterator
from typing import Final

from asmdnn.dump.kernel import DumpedKernel
from asmdnn.generators.contract import Footprint, Range

_WIDTH: Final = 117


def header(kernel: DumpedKernel) -> str:
    """The header's text, valid C99 and C++."""
    symbol = kernel.symbol
    guard = f"ASMDNN_{symbol.upper()}_H"
    return f"""{_comment(kernel)}
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

struct {symbol}_frame {{
{_fields(kernel)}
}};

void {symbol}(const struct {symbol}_frame *frame);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _comment(kernel: DumpedKernel) -> str:
    features = f"a CPU of level {kernel.isa}: {', '.join(kernel.features)}"
    needs = features if kernel.features else "any x86-64 CPU"
    fence = "It has streaming stores: run SFENCE (_mm_sfence) before another thread reads what it has written."
    tiles = "It uses tile registers: Linux gives them to a process that asks, by arch_prctl(ARCH_REQ_XCOMP_PERM, 18)."
    paragraphs = [
        f"Needs {needs}.  System V ABI; keeps every register that a callee must keep; may be called by any number of "
        "threads at once.  The text below is the generator's; the arguments that it names are the fields of the frame.",
        *[fence] * kernel.streams,
        *[tiles] * ("amx_tile" in kernel.features),
        *kernel.contract.split("\n\n"),
        f"{kernel.spec!r}",
    ]
    lines = [kernel.name]
    for paragraph in paragraphs:
        rows = paragraph.splitlines()
        lines += ["", *(rows if len(rows) > 1 else textwrap.wrap(paragraph, _WIDTH, break_long_words=False))]
    text = "\n".join(f" * {line}".rstrip() for line in lines).replace("*/", "* /").replace("/*", "/ *")
    return f"/*{text[2:]}\n */"


def _fields(kernel: DumpedKernel) -> str:
    footprint = kernel.footprint
    if footprint is None:
        return "\n".join(f"    int64_t {name};" for name in kernel.arguments)
    fields = []
    for index, name in enumerate(kernel.arguments):
        numbers = [of.argument for of in (footprint.taps, footprint.words) if of]
        kind = "int64_t" if index in numbers else "void"
        constant = "" if any(r.argument == index for r in footprint.writes) else "const "
        uses = ";\n     * ".join(_uses(footprint, index)) or "not accessed, perhaps prefetched"
        fields.append(f"    /* {uses} */\n    {constant}{kind} *{name};")
    return "\n".join(fields)


def _uses(footprint: Footprint, index: int) -> Iterator[str]:
    """What happens to the bytes after the pointer of one argument."""
    for verb, ranges in (("reads", footprint.reads), ("writes", footprint.writes)):
        mine = [r for r in ranges if r.argument == index]
        if mine:
            yield f"{verb} {_extent(mine)}"
    if footprint.words and index == footprint.words.argument:
        values = ", ".join(f"{value}" for value in footprint.words.values)
        yield f"all ranges here are of these numbers: {values}; with others a call has other sizes"
    taps = footprint.taps
    if taps and index == taps.argument:
        count = len(taps.groups)
        lists = f"{count} list{'s' * (count != 1)} of taps"
        yield f"reads {lists}, a count and so many tuples of {len(taps.targets)} byte offsets"
    if taps and index in taps.targets:
        for number, group in enumerate(taps.groups):
            mine = [r for r in group if r.argument == index]
            if mine:
                yield f"for each tap of list {number} reads {_extent(mine)} from the pointer plus the tap's offset"


def _extent(ranges: list[Range]) -> str:
    begin, end = min(r.begin_bytes for r in ranges), max(r.end_bytes for r in ranges)
    count = sum(e - b for b, e in _merged(ranges))
    return f"bytes {begin} to {end - 1}" if count == end - begin else f"{count} of bytes {begin} to {end - 1}"


def _merged(ranges: list[Range]) -> Iterator[tuple[int, int]]:
    """The ranges in order, those that touch as one."""
    begin, end = 0, 0
    for r in sorted(ranges, key=lambda r: r.begin_bytes):
        if r.begin_bytes > end or begin == end:
            if end > begin:
                yield begin, end
            begin, end = r.begin_bytes, r.end_bytes
        end = max(end, r.end_bytes)
    yield begin, end
