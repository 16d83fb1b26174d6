"""An explanation as text for a terminal, with colours if asked for."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from asmdnn.explain.model import CodeLoop, DrawnPhase, Explanation, Instruction, PlanKernel, RegisterHolding

BYTES_WIDTH: Final = 22
TEXT_WIDTH: Final = 40
ROLE_WIDTH: Final = 48
_COLOURS: Final = {
    "fma": "32", "vector": "32", "broadcast": "36", "load": "36", "store": "35", "prefetch": "2", "shuffle": "33",
    "branch": "33", "heading": "1", "faint": "2", "label": "33", "chosen": "32", "refused": "31",
}  # fmt: skip


class Painter:
    """Colours a word if there are colours."""

    def __init__(self, colours: bool) -> None:
        self.colours = colours

    def __call__(self, what: str, text: str) -> str:
        code = _COLOURS.get(what)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours and code and text else text


def text_of(explanation: Explanation, kernels: Sequence[int], colours: bool) -> str:
    """Overview, dispatch and schedule, then the listings of the kernels of these numbers."""
    paint = Painter(colours)
    lines = [paint("heading", explanation.problem), explanation.summary, ""]
    lines += [paint("heading", "dispatch"), *_dispatch(explanation, paint), ""]
    lines += [paint("heading", f"schedule, {explanation.threads} threads asked for"), *_schedule(explanation), ""]
    for number in kernels:
        lines += [*_kernel(explanation, number, paint), ""]
    return "\n".join(lines[:-1])


def _dispatch(explanation: Explanation, paint: Painter) -> Iterator[str]:
    for entry in explanation.implementations:
        yield f"  {paint(entry.verdict, f'{entry.verdict:9}')} {entry.name:24} {entry.reason}".rstrip()


def _schedule(explanation: Explanation) -> Iterator[str]:
    for number, phase in enumerate(explanation.phases):
        yield f"  phase {number}  {phase.records} records, {phase.cycles} cycles expected; {phase.start}"
        yield f"    arguments  {', '.join(phase.arguments)}"
        for use in phase.kernels:
            yield (
                f"    kernel {use.kernel:<3} {use.records:7} records {use.cycles:11} cycles  "
                f"{explanation.kernels[use.kernel].name}"
            )
        for part in phase.threads:
            yield f"    thread {part.thread:<3} records {part.begin} to {part.end - 1}, {part.cycles} cycles"
        yield from _plane(phase)


def _plane(phase: DrawnPhase) -> Iterator[str]:
    plane = phase.plane
    if plane:
        of = f" ({plane.of})" if plane.of else ""
        tiles = sum(len(block.records) for block in plane.blocks)
        yield (
            f"    {tiles} tiles over {len(plane.blocks)} block{'s' * (len(plane.blocks) > 1)} of {plane.tensor}{of}, "
            f"each a plane {plane.axes[0]} x {plane.axes[1]} = {plane.rows} x {plane.columns}"
        )


def _kernel(explanation: Explanation, number: int, paint: Painter) -> Iterator[str]:
    kernel = explanation.kernels[number]
    yield paint("heading", f"kernel {number}  {kernel.name}")
    yield (
        f"  {len(kernel.instructions)} instructions, {kernel.code_bytes} bytes of code"
        + (f", {kernel.size_bytes} with constants" if kernel.size_bytes > kernel.code_bytes else "")
    )
    for loop in kernel.loops:
        yield f"  loop {'  ' * loop.depth}{loop.name}: {loop.begin:#x} to {loop.end:#x}"
    for names, purpose, begin, end in register_rows(kernel.registers):
        yield f"  {names:16} {purpose:28} {begin:#x} to {end:#x}"
    yield from listing(kernel, paint)


def register_rows(holdings: Sequence[RegisterHolding]) -> list[tuple[str, str, int, int]]:
    """Registers that are the elements of one shape as one row: ("ymm0 - ymm11", "acc[0][0] - [5][1]", begin, end)."""
    groups: dict[tuple[str, int], list[RegisterHolding]] = {}
    turns: dict[str, int] = {}  # a register taken again for the same purpose starts another group
    for held in sorted(holdings, key=lambda h: h.begin):
        stem = held.purpose.partition("[")[0]
        turn = turns[held.register] = turns.get(held.register, -1) + 1
        groups.setdefault((stem, turn), []).append(held)
    rows = []
    for (stem, _), members in groups.items():
        members.sort(key=lambda h: _natural(h.purpose))
        first, last = members[0], members[-1]
        one = len(members) == 1
        names = first.register if one else f"{first.register} - {last.register}"
        purpose = first.purpose if one else f"{first.purpose} - {last.purpose.removeprefix(stem)}"
        rows.append((names, purpose, min(h.begin for h in members), max(h.end for h in members)))
    return sorted(rows, key=lambda row: (row[2], row[3]))


def _natural(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]


def listing(kernel: PlanKernel, paint: Painter) -> Iterator[str]:
    """A line for each instruction; loops are bracketed on the left, sections have a heading."""
    depth = max((loop.depth for loop in kernel.loops), default=-1) + 1
    section = None
    for instruction in kernel.instructions:
        bars = _bars(instruction, kernel.loops, depth)
        above = "".join("│" if bar in "│╰" else " " for bar in bars)
        for label in instruction.labels:
            yield f"{above} {paint('label', label + ':')}"
        if instruction.section != section:
            section = instruction.section
            yield f"{above} {paint('faint', '-- ' + (section or 'no section'))}"
        text = paint(instruction.kind, f"{instruction.text:{TEXT_WIDTH}}")
        yield (
            f"{bars} {instruction.offset:5x}  {paint('faint', f'{instruction.data.hex():{BYTES_WIDTH}}')} {text} "
            f"{instruction.role:{ROLE_WIDTH}} {paint('faint', instruction.source)}"
        ).rstrip()


def _bars(instruction: Instruction, loops: Sequence[CodeLoop], depth: int) -> str:
    bars = [" "] * depth
    for loop in loops:
        if loop.begin <= instruction.offset < loop.end:
            first, last = instruction.offset == loop.begin, instruction.offset == loop.jump
            bars[loop.depth] = "╭" if first else "╰" if last else "│"
    return "".join(bars)
