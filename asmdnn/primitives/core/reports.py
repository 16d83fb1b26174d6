"""Verbose lines about primitives: the columns of oneDNN's template, with the problem as benchdnn writes it.

    operation, engine, primitive, implementation, prop_kind, memory descriptors, attributes, auxiliary, problem, ms

Source: oneDNN's developer guide, "Verbose mode"; the v1 lines of oneDNN 3.5.  Two more operations have the same
columns: `dispatch`, whose last one is the reason of a refusal, and `jit`, whose implementation is a kernel's name.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from asmdnn import verbose
from asmdnn.errors import AsmdnnError
from asmdnn.jit.kernels import CacheCounts
from asmdnn.memory import MemoryDesc
from asmdnn.planning.host import effective_isa
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.words import attribute_words, format_words
from asmdnn.primitives.core.description import asked
from asmdnn.primitives.core.registry import kind_of
from asmdnn.primitives.core.tuned import Choice
from asmdnn.runtime.threads import max_threads
from asmdnn.version import __version__

TEMPLATE = (
    "operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time"
)
# oneDNN's short names.
ARGUMENTS = {"weights": "wei", "bias": "bia", "diff_weights": "diff_wei", "diff_bias": "diff_bia"}


def report_refusals(desc: Any, attr: Attr, refusals: Sequence[Refusal]) -> None:
    """A line for each implementation that does not take the request."""
    for refusal in refusals:
        verbose.say("dispatch", *_columns("dispatch", desc, attr, refusal.implementation, asked(desc)), refusal.reason)


def report_choice(desc: Any, attr: Attr, implementation: str, choice: Choice) -> None:
    """A line for a plan that a measurement chose."""
    verbose.say("dispatch", *_columns("dispatch", desc, attr, implementation, asked(desc)), f"tuned: {choice}")


def report_creation(pd: Any, counts: CacheCounts, ms: float) -> None:
    """`create:cache_miss` if a kernel had to be generated, else `create:cache_hit`; the auxiliary column counts."""
    operation = "create:cache_miss" if counts.generated else "create:cache_hit"
    origins = {"memory": counts.memory_hits, "pack": counts.pack_hits, "disk": counts.disk_hits}
    text = " ".join(f"{name}:{n}" for name, n in (origins | {"generated": counts.generated}).items() if n)
    columns = _columns(operation, pd.desc, pd.attr, pd.implementation, pd.plan.tensors, text)
    verbose.say("create", *columns, f"{ms:.6g}")


def call_report(pd: Any) -> Callable[[float], None]:
    """A function that reports a call, given its milliseconds.  The rest of the line is put together now."""
    columns = _columns("exec", pd.desc, pd.attr, pd.implementation, pd.plan.tensors)
    return partial(_report_call, columns)


def introduce() -> None:
    """The lines about this process, before the first event."""
    try:
        isa = str(effective_isa())
    except AsmdnnError:
        isa = "none"
    facts = (f"info,asmdnn v{__version__}", f"info,cpu,runtime:OpenMP,nthr:{max_threads()}", f"info,cpu,isa:{isa}")
    verbose.introduce((*facts, f"primitive,info,template:{TEMPLATE}"))


def _report_call(columns: Sequence[str], ms: float) -> None:
    verbose.say("exec", *columns, f"{ms:.6g}")


def _columns(
    operation: str, desc: Any, attr: Attr, implementation: str, tensors: Mapping[str, MemoryDesc], more: str = ""
) -> tuple[str, ...]:
    """A line without its last column."""
    words = kind_of(desc).words(desc)
    data = getattr(desc, "data", None)  # of a backward pass: its argument is called src or dst
    mds = [_md(name, tensor, getattr(desc, name, data)) for name, tensor in tensors.items()]
    if words.bias_mask is not None:
        mds[list(tensors).index("bias")] += f"_mask{words.bias_mask}"
    auxiliary = f"{words.auxiliary} {more}".strip()
    return (
        "primitive", operation, "cpu", words.primitive, implementation, words.prop_kind, " ".join(mds),
        attribute_words(attr), auxiliary, words.problem,
    )  # fmt: skip


def _md(name: str, desc: MemoryDesc, wanted: object) -> str:
    """argument : type : properties : kind of format : tag : strides : flags; "a" is a format that was left open."""
    is_open = isinstance(wanted, MemoryDesc) and wanted.is_any
    properties = "a" * is_open + ("" if desc.is_any else "p" * desc.has_padding + "0" * bool(desc.offset0))
    head = f"{ARGUMENTS.get(name, name)}:{desc.dtype}:{properties}"
    if desc.is_any:
        return f"{head}:any:::f0"
    tag, strides = format_words(desc)
    return f"{head}:blocked:{tag}:{strides}:f0"
