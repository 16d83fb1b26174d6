"""What a notebook shows of a value.

`_repr_html_` of Memory, MemoryDesc, PrimitiveDesc, Primitive and Code asks here.  Whoever can draw one registers how,
so that memory and isa need not know who draws them; the API loads the drawings, in asmdnn/show/notebook.py.
"""

from functools import singledispatch

from asmdnn.forking import importing


@singledispatch
def html_of(value: object) -> str:
    """The value as HTML; its repr, where nobody has registered anything better."""
    with importing():
        from html import escape  # not above: few processes draw anything

    return f"<pre>{escape(repr(value))}</pre>"
