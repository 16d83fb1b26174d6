"""What verbose lines say of a primitive: the columns of oneDNN's template, with the problem as benchdnn writes it.

    operation, engine, primitive, implementation, prop_kind, memory descriptors, attributes, auxiliary, problem, ms

Source: oneDNN's developer guide, "Verbose mode"; the v1 lines of oneDNN 3.5.  Two more operations have the same
columns: `dispatch`, whose last one is the reason of a refusal, and `jit`, whose implementation is a kernel's name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import partial
from typing import Any

from asmdnn import verbose
from asmdnn.errors import AsmdnnError
from asmdnn.isa.cpu import effective_isa
from asmdnn.jit.kernels import CacheCounts
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attr import Attr, Sum
from asmdnn.primitives.convolution import ConvolutionForward
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.reorder import Reorder
from asmdnn.primitives.shuffle import Shuffle
from asmdnn.runtime.threads import max_threads
from asmdnn.version import __version__

TEMPLATE = (
    "operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time"
)
ARGUMENTS = {"weights": "wei", "bias": "bia"}  # oneDNN's short names


@dataclass(frozen=True, slots=True)
class Words:
    """What depends on the kind of primitive; problem: benchdnn's problem string."""

    primitive: str
    auxiliary: str
    problem: str


def report_refusals(desc: Any, attr: Attr, refusals: Sequence[Refusal]) -> None:
    """A line for each implementation that does not take the request."""
    for refusal in refusals:
        verbose.say("dispatch", *_columns("dispatch", desc, attr, refusal.implementation, _asked(desc)), refusal.reason)


def report_creation(pd: Any, counts: CacheCounts, ms: float) -> None:
    """`create:cache_miss` if a kernel had to be generated, else `create:cache_hit`; the auxiliary column counts."""
    operation = "create:cache_miss" if counts.generated else "create:cache_hit"
    origins = {"memory": counts.memory_hits, "pack": counts.pack_hits, "disk": counts.disk_hits}
    text = " ".join(f"{name}:{n}" for name, n in (origins | {"generated": counts.generated}).items() if n)
    columns = _columns(operation, pd.desc, pd.attr, pd.implementation, pd.plan.tensors, text)
    verbose.say("create", *columns, f"{ms:.6g}")


def call_report(pd: Any) -> Callable[[float], None]:
    """What a call has to be told in the end: its milliseconds.  Everything else is put together now."""
    columns = _columns("exec", pd.desc, pd.attr, pd.implementation, pd.plan.tensors)
    return partial(_report_call, columns)


def introduce() -> None:
    """The lines about this process, before the first event."""
    try:
        isa = effective_isa().name
    except AsmdnnError:
        isa = "none"
    facts = (f"info,asmdnn v{__version__}", f"info,cpu,runtime:OpenMP,nthr:{max_threads()}", f"info,cpu,isa:{isa}")
    verbose.introduce((*facts, f"primitive,info,template:{TEMPLATE}"))


def _report_call(columns: Sequence[str], ms: float) -> None:
    verbose.say("exec", *columns, f"{ms:.6g}")


def _columns(
    operation: str, desc: Any, attr: Attr, implementation: str, tensors: Mapping[str, MemoryDesc], more: str = ""
) -> tuple[str, ...]:
    """Everything of a line but its last column."""
    words = WORDS.get(type(desc), _plain_words)(desc)
    kind = desc.prop_kind.value if hasattr(desc, "prop_kind") else "undef"
    mds = " ".join(_md(name, tensor, getattr(desc, name, None)) for name, tensor in tensors.items())
    chain = "+".join(_post_op(op) for op in attr.post_ops)
    attributes = f"attr-post-ops:{chain}" if chain else ""
    auxiliary = f"{words.auxiliary} {more}".strip()
    return (
        "primitive", operation, "cpu", words.primitive, implementation, kind, mds, attributes, auxiliary, words.problem
    )  # fmt: skip


def _asked(desc: Any) -> dict[str, MemoryDesc]:
    """The tensors of a description, formats as asked for."""
    values = {field.name: getattr(desc, field.name) for field in fields(desc)}
    return {name: value for name, value in values.items() if isinstance(value, MemoryDesc)}


def _md(name: str, desc: MemoryDesc, asked: object) -> str:
    """argument : type : properties : kind of format : tag : strides : flags; "a" is a format that was left open."""
    is_open = isinstance(asked, MemoryDesc) and asked.is_any
    properties = "a" * is_open + ("" if desc.is_any else "p" * desc.has_padding + "0" * bool(desc.offset0))
    head = f"{ARGUMENTS.get(name, name)}:{desc.dtype}:{properties}"
    if desc.is_any:
        return f"{head}:any:::f0"
    if tag := desc.tag:
        return f"{head}:blocked:{tag}::f0"
    order = sorted(range(desc.ndims), key=lambda dim: -desc.strides[dim])
    blocked = {dim for dim, _ in desc.inner_blocks}
    letters = "".join(chr(ord("A" if dim in blocked else "a") + dim) for dim in order)
    inner = "".join(f"{size}{chr(ord('a') + dim)}" for dim, size in desc.inner_blocks)
    return f"{head}:blocked:{letters}{inner}:{'x'.join(map(str, desc.strides))}:f0"


def _post_op(op: Any) -> str:
    if isinstance(op, Sum):
        return "sum" if op.scale == 1 else f"sum:{op.scale:g}"
    parameters = [op.alpha, op.beta]
    while parameters and not parameters[-1]:
        parameters.pop()
    return ":".join((f"eltwise_{op.alg}", *(f"{value:g}" for value in parameters)))


def _convolution(desc: ConvolutionForward) -> Words:
    (mb, ic), oc = desc.src.dims[:2], desc.dst.dims[1]
    axes = []
    for i, axis in enumerate("hw"):
        sizes = {
            "i": desc.src.dims[2 + i], "o": desc.dst.dims[2 + i], "k": desc.weights.dims[2 + i],
            "s": desc.strides[i], "d": desc.dilations[i], "p": desc.padding_l[i],
        }  # fmt: skip
        axes.append("".join(f"{kind}{axis}{size}" for kind, size in sizes.items()))
    return Words("convolution", f"alg:{desc.algorithm.value}", f"mb{mb}_ic{ic}oc{oc}_{'_'.join(axes)}")


def _reorder(desc: Reorder) -> Words:
    mask = desc.compensation
    return Words("reorder", "" if mask is None else f"oflag:s8s8_comp:{mask}", _dims(desc.src))


def _shuffle(desc: Shuffle) -> Words:
    return Words("shuffle", f"axis:{desc.axis} group:{desc.group_size}", _dims(desc.src))


def _plain_words(desc: Any) -> Words:
    """For a kind of primitive without a line of its own: the dims of every tensor."""
    alg = getattr(desc, "algorithm", getattr(desc, "alg", None))
    name = alg.value if isinstance(alg, Enum) else alg
    dims = dict.fromkeys(_dims(tensor) for tensor in _asked(desc).values())
    return Words(type(desc).__name__.lower(), f"alg:{name}" if name else "", ":".join(dims))


def _dims(desc: MemoryDesc) -> str:
    return "x".join(map(str, desc.dims))


WORDS: dict[type, Callable[[Any], Words]] = {ConvolutionForward: _convolution, Reorder: _reorder, Shuffle: _shuffle}
