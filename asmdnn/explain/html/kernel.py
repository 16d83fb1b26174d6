"""A kernel on the page: what is in it, its register map, its listing."""

from collections import Counter
from collections.abc import Iterator
from html import escape

from asmdnn.explain.classes import CLASSES
from asmdnn.explain.html.registers import register_map
from asmdnn.explain.model import CodeLoop, Explanation, Instruction, PlanKernel

_ROLE_LENGTH = 44  # what does not fit is in the tooltip
_WORD_LENGTH = 12  # bytes shown; longer encodings (EVEX with displacement) go on in the tooltip


def kernel_section(explanation: Explanation, number: int) -> Iterator[str]:
    """Hidden until the script shows it, but for the first one."""
    kernel = explanation.kernels[number]
    uses = [(i, use) for i, phase in enumerate(explanation.phases) for use in phase.kernels if use.kernel == number]
    called = ", ".join(f"{use.records:,} times in phase {i}" for i, use in uses)
    constants = f", {kernel.size_bytes:,} with constants" if kernel.size_bytes > kernel.code_bytes else ""
    yield f'<article class="kernel" id="kernel{number}" data-kernel="{number}">'
    yield f'<h3 class="name"><code>{escape(kernel.name)}</code></h3>'
    yield (
        f'<p class="facts">{len(kernel.instructions):,} instructions, {kernel.code_bytes:,} bytes of code{constants}; '
        f"called {called}</p>"
    )
    yield _mix(kernel)
    yield '<details class="spec"><summary>The spec: all that its bytes depend on</summary>'
    yield f"<pre>{_spec(kernel)}</pre></details>"
    yield f"<h4>Registers over the code</h4>{register_map(kernel)}<h4>Listing</h4>"
    yield '<div class="listing">'
    yield from _listing(explanation, number)
    yield "</div></article>"


def _spec(kernel: PlanKernel) -> str:
    """One field a line."""
    depth, out = 0, []
    for i, character in enumerate(kernel.spec):
        depth += (character in "([") - (character in ")]")
        out.append(character)
        if character == "," and depth == 1:
            out.append("\n ")
        elif character == "(" and depth == 1 and i < len(kernel.spec) - 1:
            out.append("\n  ")
    return escape("".join(out))


def _mix(kernel: PlanKernel) -> str:
    counts = Counter(instruction.kind for instruction in kernel.instructions)
    bars = "".join(
        f'<span class="k-{kind}" style="flex:{counts[kind]}" title="{counts[kind]} {kind}"></span>'
        for kind in CLASSES
        if counts[kind]
    )
    words = "".join(
        f'<li class="k-{kind}"><i></i>{kind} <b>{counts[kind]}</b></li>' for kind in CLASSES if counts[kind]
    )
    return f'<div class="mix">{bars}</div><ul class="mix-key">{words}</ul>'


def _listing(explanation: Explanation, number: int) -> Iterator[str]:
    kernel = explanation.kernels[number]
    files = {source.path: i for i, source in enumerate(explanation.sources)}
    depth = max((loop.depth for loop in kernel.loops), default=-1) + 1
    by_begin = {loop.begin: loop for loop in kernel.loops}
    index_of = {instruction.offset: i for i, instruction in enumerate(kernel.instructions)}
    section = None
    for index, instruction in enumerate(kernel.instructions):
        for label in instruction.labels:
            loop = by_begin.get(instruction.offset)
            about = _about(loop, kernel) if loop and loop.name == label else ""
            gutter = _gutter(kernel.loops, instruction, depth, opens=bool(about))
            yield f'<div class="label">{gutter}<b>{escape(label)}</b><span>{about}</span></div>'
        if instruction.section != section:
            section = instruction.section
            inside = _gutter(kernel.loops, instruction, depth)
            yield f'<div class="sec">{inside}<span>{escape(section or "no section")}</span></div>'
        yield _row(
            kernel=kernel,
            number=number,
            index=index,
            instruction=instruction,
            files=files,
            depth=depth,
            index_of=index_of,
        )


def _row(
    kernel: PlanKernel,
    number: int,
    index: int,
    instruction: Instruction,
    files: dict[str, int],
    depth: int,
    index_of: dict[int, int],
) -> str:
    emitted = f' data-s="{files[instruction.path]}-{instruction.line}"' if instruction.path else ""
    data = instruction.data.hex()
    title = f' title="{escape(instruction.role)}"' if len(instruction.role) > _ROLE_LENGTH else ""
    shown = data if len(instruction.data) <= _WORD_LENGTH else data[: 2 * _WORD_LENGTH] + "…"
    return (
        f'<div class="i k-{instruction.kind}" id="i{number}-{index}"{emitted}>'
        f"{_gutter(kernel.loops, instruction, depth, closes=True)}"
        f'<u>{instruction.offset:x}</u><s title="{data}">{shown}</s>{_text(number, instruction, index_of)}'
        f"<em{title}>{escape(instruction.role)}</em><q>{escape(instruction.source)}</q></div>"
    )


def _text(number: int, instruction: Instruction, index_of: dict[int, int]) -> str:
    mnemonic, _, operands = instruction.text.partition(" ")
    shown = escape(operands)
    if instruction.target >= 0:
        arrow = "↑" if instruction.target <= instruction.offset else "↓"
        label = escape(operands.partition("<")[2].rstrip(">"))
        shown = f'<a href="#i{number}-{index_of[instruction.target]}">{arrow} {label}</a>'
    return f"<code><b>{mnemonic}</b> {shown}</code>"


def _about(loop: CodeLoop, kernel: PlanKernel) -> str:
    inside = [i for i in kernel.instructions if loop.begin <= i.offset < loop.end]
    counts = Counter(i.kind for i in inside)
    most = ", ".join(f"{count} {kind}" for kind, count in counts.most_common(3))
    return f"loop of {len(inside)} instructions, {loop.end - loop.begin:,} bytes: {most}"


def _gutter(
    loops: tuple[CodeLoop, ...], instruction: Instruction, depth: int, opens: bool = False, closes: bool = False
) -> str:
    """A bar for every loop around; it begins at the label's row, and ends at the jump's."""
    bars = []
    for level in range(depth):
        around = next((x for x in loops if x.depth == level and x.begin <= instruction.offset < x.end), None)
        kind = ""
        if around:
            kind = "v"
            if opens and around.begin == instruction.offset:
                kind = "v o"
            elif closes and around.jump == instruction.offset:
                kind = "v e"
        bars.append(f'<i class="{kind}"></i>' if kind else "<i></i>")
    return f'<span class="g">{"".join(bars)}</span>'
