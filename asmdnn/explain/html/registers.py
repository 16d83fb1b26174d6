"""The register map: a row for each register, a bar for as long as it holds something, a tick where it is named."""

from html import escape

from asmdnn.explain.html.colours import hues
from asmdnn.explain.model import PlanKernel


def register_map(kernel: PlanKernel) -> str:
    """x is the number of the instruction, so that every instruction is as wide as any other."""
    index = {instruction.offset: i for i, instruction in enumerate(kernel.instructions)}
    index[kernel.code_bytes] = total = len(kernel.instructions)
    names = list(dict.fromkeys(held.register for held in kernel.registers))
    colour = hues(held.purpose.partition("[")[0] for held in sorted(kernel.registers, key=lambda h: h.begin))
    rows = []
    for name in names:
        bars = []
        for held in kernel.registers:
            if held.register == name:
                begin, end = index[held.begin], index[held.end]
                place = f"left:{100 * begin / total:.3f}%;width:{100 * (end - begin) / total:.3f}%"
                purpose = escape(held.purpose)
                title = f"{name} is {purpose} from {held.begin:#x} to {held.end:#x}"
                shade = colour[held.purpose.partition("[")[0]]
                bars.append(f'<b style="{place};--h:{shade}" title="{title}">{purpose}</b>')
        rows.append(f'<div class="r" data-r="{name}"><span>{name}</span><div>{"".join(bars)}</div></div>')
    loops = "".join(
        f'<div class="loop" style="left:{100 * index[loop.begin] / total:.3f}%;'
        f'width:{100 * (index[loop.end] - index[loop.begin]) / total:.3f}%"><span>{escape(loop.name)}</span></div>'
        for loop in kernel.loops
    )
    return (
        f'<div class="map" data-total="{total}"><div class="over">{loops}<div class="cursor"></div></div>'
        f"{''.join(rows)}{_ticks(kernel, names, total)}</div>"
    )


def _ticks(kernel: PlanKernel, names: list[str], total: int) -> str:
    """Where each register is named, as one path."""
    row = {name: i for i, name in enumerate(names)}
    marks = [
        f"M{i} {row[name]}.1v.8"
        for i, instruction in enumerate(kernel.instructions)
        for name in instruction.registers
        if name in row
    ]
    return (
        f'<svg class="ticks" viewBox="-0.5 0 {total} {len(names)}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{"".join(marks)}"/></svg>'
    )
