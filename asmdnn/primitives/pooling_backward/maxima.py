"""Gradients of maxima: every pixel of diff_src is the sum over its windows of where(the index names it, diff_dst, 0).

As in a deconvolution, pixels at one place in a cell of strides are reached by the same positions of windows, but for
the edges.  So a *patch* of pixels is one element-wise function of diff_dst and indices, and every element of diff_src
is written once.  Where windows overlap so much that a patch has many positions, several passes add to one another.
Channels lie side by side, plain or blocked; other formats are copied.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.program import Program
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, View
from asmdnn.planning.phases import merged, of_one_width, sorted_by
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.pooling_backward.means import words_of
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import dataclass, replace
from asmdnn.types import f32

NAME = "maxima"
NUMBERS = "numbers of pixels"  # a constant
SUMS = "sums of positions"  # scratch
LARGEST_PLANE = 2**24  # numbers up to which f32 holds every one
AT_ONCE = 9  # positions of a pass: two operands each
OPERANDS = ("diff_dst", "indices")
DST = 1  # of the arguments of element-wise kernels


@dataclass(frozen=True, slots=True)
class Patch:
    """Along an axis: pixels first, first + step, ... of src, `count` of them, and for each position that reaches them
    the output whose window has it at the first one."""

    first: int
    step: int
    count: int
    outputs: tuple[int, ...]


def plan(request: tuple[PoolingBackward, Engine]) -> Plan:
    """Raises Refused."""
    desc, engine = request
    if desc.indices is None:
        raise Refused(f"it is of maxima, whose places are known, alg is {desc.alg}")
    isa, pixels = f32_level(engine.isa), desc.diff_src.dims[2:]
    if prod(pixels) > LARGEST_PLANE:
        raise Refused(f"diff_src has planes of {prod(pixels)} elements, numbers beyond 2^24 are not exact in f32")
    given = {"diff_src": desc.diff_src, "diff_dst": desc.diff_dst, "indices": desc.indices}
    tag = tag_of(given, lanes_of(isa))
    own = {name: MemoryDesc(tensor.dims, tensor.dtype, tag) for name, tensor in given.items()}
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.constants[NUMBERS] = words_of(np.arange(prod(pixels), dtype=np.float32))
    patches = list(product(*(patches_of(desc, axis) for axis in range(len(pixels))))) if desc.diff_src.nelems() else []
    add_passes(assembly, patches, own, engine)
    made = assembly.plan(f"{NAME}:{isa}", own, ("diff_src",))
    passed = {name: tensor for name, tensor in given.items() if not tensor.is_any}
    return between_reorders(made, passed, engine.tuning, isa=engine.isa)


def add_passes(
    assembly: Assembly, patches: Sequence[tuple[Patch, ...]], tensors: Mapping[str, MemoryDesc], engine: Engine
) -> None:
    """As many passes as the patch with the most positions needs; all but the last one leave sums, from two buffers in
    turns, to the one after."""
    pixels = tensors["diff_src"].dims[2:]
    numbers = MemoryDesc((1, 1, *pixels), f32, LETTERS[: 2 + len(pixels)])
    most = max((prod(len(along.outputs) for along in patch) for patch in patches), default=0)
    passes = max(1, -(-most // AT_ONCE))
    for number in range(passes):
        before, result = (f"{SUMS} 2" if n % 2 else SUMS for n in (number - 1, number))
        if number == passes - 1:
            result = "diff_src"
        else:
            assembly.scratch[result] = tensors["diff_src"].size_bytes
        places = {"dst": View(result), "numbers": View(NUMBERS, 0, numbers.size_bytes), "before": View(before)}
        found: list[Phase] = []
        for patch in patches:
            part = added(patch, number, {**tensors, "numbers": numbers}, engine)
            operands = (name for name in part.tensors if name.startswith(OPERANDS))
            read = {name: View(name.split()[0]) for name in operands}  # "indices 3" is a view of the indices
            found += [phase.on({**read, **places}) for phase in part.phases]
        assembly.add(by_row(found, engine.tuning.phases.written_out))


def by_row(phases: Sequence[Phase], most: int) -> list[Phase]:
    """One phase of all patches, row by row of what is written: patches of neighbouring rows read the same outputs,
    which a cache still has.  Of more records than `most`, one after the other, without barriers between them."""
    if sum(phase.count for phase in phases) > most or not phases:
        return [replace(phase, independent=phase.independent or i > 0) for i, phase in enumerate(phases)]
    wide = of_one_width([phase.written_out() for phase in phases])
    arguments = max(phases, key=lambda phase: len(phase.arguments)).arguments
    return [sorted_by(merged([replace(phase, arguments=arguments) for phase in wide]), 1 + DST)]


def tag_of(tensors: Mapping[str, MemoryDesc], lanes: int) -> str:
    """Of a format with channels side by side: that of the tensors, if they all have it; else blocked by the vector."""
    tags = {tensor.tag for tensor in tensors.values() if not tensor.is_any}
    inner = LETTERS[2 : tensors["diff_src"].ndims]
    usable = {f"aB{inner}{size}b" for size in (lanes, 8, 16)} | {f"a{inner}b"}
    return str(tags.pop()) if len(tags) == 1 and tags <= usable else f"aBx{lanes}b"


def patches_of(desc: PoolingBackward, axis: int) -> Iterator[Patch]:
    """All pixels along an axis: place by place of a cell, and of each, runs that the same positions reach."""
    size, made, stride = desc.diff_src.dims[2 + axis], desc.diff_dst.dims[2 + axis], desc.strides[axis]
    step, before = desc.dilations[axis] + 1, desc.padding_l[axis]
    for place in range(min(stride, size)):
        count = len(range(place, size, stride))
        far = [place + before - r * step for r in range(desc.kernel[axis])]
        shifts = [distance // stride for distance in far if distance % stride == 0]
        ends = {0, count} | {min(max(x, 0), count) for shift in shifts for x in (-shift, made - shift)}
        for begin, end in pairwise(sorted(ends)):
            inside = tuple(begin + shift for shift in shifts if begin + shift >= 0 and end + shift <= made)
            yield Patch(place + begin * stride, stride, end - begin, inside)


@lru_cache
def chosen(positions: int, goes_on: bool) -> Program:
    """The sum of diff_dst where the index is the number of the pixel; of the number, what was before, and for each
    position diff_dst and the index."""
    build = Builder(1 + goes_on + 2 * positions)
    number, *rest = build.inputs
    total = rest.pop(0) if goes_on else number * 0.0
    for x, index in zip(rest[::2], rest[1::2], strict=True):
        total = total + build.where(index == number, x, 0.0)
    return build.finish(total)


def added(patch: tuple[Patch, ...], number: int, tensors: Mapping[str, MemoryDesc], engine: Engine) -> Plan:
    """The pixels of a patch with the positions of one pass."""
    dims = (*tensors["diff_src"].dims[:2], *(along.count for along in patch))
    first, steps = [along.first for along in patch], [along.step for along in patch]
    of_src = {"dst": view(tensors["diff_src"], dims, first, steps)}
    others = {} if number == 0 else {"before": of_src["dst"]}
    places = list(product(*(along.outputs for along in patch)))[number * AT_ONCE : (number + 1) * AT_ONCE]
    for i, place in enumerate(places):
        for name in OPERANDS:
            others[f"{name} {i}"] = view(tensors[name], dims, place, [1] * len(place))
    program = chosen(len(places), number > 0)
    request = Request(
        NAME, ("numbers", view(tensors["numbers"], (1, 1, *dims[2:]), first, steps)), ("dst", of_src["dst"]), others,
        lambda operands: ExpressionOp(program, tuple(operands[name] for name in others)),
    )  # fmt: skip
    return schedule(request, NO_ATTR, engine)


def view(
    tensor: MemoryDesc, dims: tuple[int, ...], first: "tuple[int, ...] | list[int]", steps: list[int]
) -> MemoryDesc:
    """Pixels `first` + n * `steps` along the axes, of a format whose axes are not blocked."""
    along = tensor.strides[2:]
    offset = sum(at * stride for at, stride in zip(first, along, strict=True))
    strides = (*tensor.strides[:2], *(step * stride for step, stride in zip(steps, along, strict=True)))
    placed = {"inner_blocks": tensor.inner_blocks, "offset0": tensor.offset0 + offset}
    return MemoryDesc(dims, tensor.dtype, strides=strides, **placed)  # type: ignore[arg-type]  # by name
