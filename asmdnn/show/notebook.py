"""Memory layouts, plans and kernels as notebooks show them; importing this registers the functions."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

from asmdnn.errors import InvalidArguments
from asmdnn.isa.code import Code
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.notebook import html_of
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.show.files import draw

LEFT = "style='text-align:left'"
MONOSPACED = "style='text-align:left;font-family:monospace;white-space:pre'"


@html_of.register(MemoryDesc)
def of_desc(desc: MemoryDesc) -> str:
    """The layout's picture; the words alone for a descriptor that has none, such as `any`."""
    title = f"<div>{escape(repr(desc))}</div>"
    try:
        document = draw(desc)
    except InvalidArguments:
        return title
    # An image and not the document itself, whose styles would be those of the page.
    data = b64encode(document.encode()).decode()
    return f'{title}<img alt="which element lies where" src="data:image/svg+xml;base64,{data}"/>'


@html_of.register(Memory)
def of_memory(memory: Memory) -> str:
    """Where it is, and its layout."""
    return f"<div>{escape(repr(memory))}</div>{of_desc(memory.desc)}"


@html_of.register(PrimitiveDesc)
def of_plan(pd: PrimitiveDesc) -> str:
    """Formats, refusals, and how often each phase calls which kernel."""
    plan = pd.plan
    tensors = _table(("argument", "memory"), ((name, str(desc)) for name, desc in plan.tensors.items()))
    calls = (
        (str(number), str(records), kernel.name)
        for number, phase in enumerate(plan.phases)
        for kernel, records, _ in phase.uses()
    )
    refusals = "".join(f"<div>refused: {escape(str(refusal))}</div>" for refusal in pd.refusals)
    heading = f"<div><b>{escape(pd.implementation)}</b>: {escape(str(pd.desc))}</div>{refusals}"
    return f"{heading}{tensors}{_table(('phase', 'calls', 'kernel'), calls)}"


@html_of.register(Primitive)
def of_primitive(primitive: Primitive) -> str:
    """What it is, and its plan."""
    return f"<div>{escape(repr(primitive))}</div>{of_plan(primitive.pd)}"


@html_of.register(Code)
def of_code(code: Code) -> str:
    """The listing: offset, bytes, text, role and the Python line that emitted it."""
    if code.listing is None:
        return f"<div>{len(code.data)} bytes of code; Assembler(name, listing=True) keeps the instructions</div>"
    rows = ((f"{at.offset:x}", at.data.hex(), at.text, at.role, at.source) for at in code.listing)
    table = _table(("offset", "bytes", "instruction", "role", "source"), rows, MONOSPACED)
    return f'<div style="max-height:40em;overflow:auto">{table}</div>'


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], cell: str = LEFT) -> str:
    head = "".join(f"<th {LEFT}>{title}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td {cell}>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
