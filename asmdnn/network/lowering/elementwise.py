"""Maps with no kernel before them as element-wise primitives."""

from asmdnn.network.descriptors import channels_last, is_row_major, row_major, stored
from asmdnn.network.format_choice import CHANNELS_LAST
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import AS_IT_IS, Start, tail_of
from asmdnn.network.lowering.integers import source_of
from asmdnn.network.lowering.maps import SIMPLE, Tail
from asmdnn.network.lowering.views import repeated
from asmdnn.network.steps import Steps
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.eltwise import EltwiseForward
from asmdnn.primitives.shapes.formats import dense_like
from asmdnn.records import replace
from asmdnn.types import PropKind, f32


def lower_maps(steps: Steps, group: Group) -> None:
    """Maps with no kernel before them: of a tensor that has the result's dims, or of two that make them."""
    result = group.result
    shape = steps.shape(result) or (1,)
    if group.has_integers:
        lower_integers(steps, group)
        return
    if group.x == NOTHING:
        lower_broadcast(steps, group)
        return
    source, dtype = steps.kept(group.x), steps.type_of(result)
    tail = Tail(steps, group.maps, group.x, reads_all=True, further=group.further)
    dst = steps.result_format(shape, dtype)
    if not steps.choice.result and (not source.desc.is_dense or source.desc.dtype != dtype):
        dst = dense_like(source.desc, row_major(shape, dtype))
    desc = EltwiseForward(PropKind.forward_inference, "linear", source.desc, dst, 1.0, -0.0)
    only = group.maps[0] if len(group.maps) == 1 else None
    if only is not None and only.op == "Relu":
        desc, tail = EltwiseForward(PropKind.forward_inference, "relu", source.desc, dst), Tail(steps, (), group.x)
    places, results = {"src": source, **tail.places()}, {"dst": result, **tail.results("dst")}
    steps.add(group.nodes, group.label, desc, places, results, attr=tail.attr())


def lower_integers(steps: Steps, group: Group) -> None:
    """Integers as they lie, and where all is of one tensor with its channels after the batch: integers with channels
    last, which kernels of integers read.  Of tensors of which none has the result's dims one is read as often as
    wanted."""
    dtype, shape, start = stored(steps.value(group.result)), steps.shape(group.result) or (1,), AS_IT_IS
    is_repeated = group.x == NOTHING
    if is_repeated:
        group = replace(group, x=next(x for x in group.maps[0].inputs if x and not steps.graph.is_constant(x)))
    if group.x in steps.dequantizers:
        found = source_of(steps, group.x)
        scale, zero = found.numbers.scale.reshape(()), found.numbers.zero.reshape(())
        source, start = (steps.plain_bytes if is_repeated else steps.bytes_of)(found.name), Start(scale, -scale * zero)
    else:
        source = (steps.plain if is_repeated else steps.place)(group.x)
    if is_repeated:
        source = Place(source.buffer, repeated(source.desc, shape))
    tail = tail_of(steps, group, None, start, reads_bytes=True)
    dst = steps.result_format(shape, dtype)
    if dst.is_any:
        is_image = dtype != f32 and len(shape) > CHANNELS_LAST and is_row_major(source.desc)
        dst = channels_last(shape, dtype) if is_image else dense_like(source.desc, row_major(shape, dtype))
    desc = EltwiseForward(PropKind.forward_inference, "linear", source.desc, dst, 1.0, -0.0)
    places = {"src": source, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, attr=tail.attr())


def lower_broadcast(steps: Steps, group: Group) -> None:
    """The first map is of tensors of which none has the result's dims: [n, 1] + [1, m].

    Of others than sums, products and extremes the first one is read as often as wanted."""
    first, *rest = group.maps
    shape = steps.shape(group.result)
    if first.op not in SIMPLE or len(first.inputs) != 2:
        plain, tail = steps.plain(first.inputs[0]), Tail(steps, group.maps, first.inputs[0])
        source = Place(plain.buffer, repeated(plain.desc, shape))
        linear = EltwiseForward(PropKind.forward_inference, "linear", source.desc, row_major(shape), 1.0, -0.0)
        places = {"src": source, **tail.places()}
        steps.add(group.nodes, group.label, linear, places, {"dst": group.result}, attr=tail.attr())
        return
    tail = Tail(steps, rest, first.outputs[0])
    ends = Tail(steps, group.maps, NOTHING)
    sources = {f"src{i}": ends.place(name) for i, name in enumerate(first.inputs)}
    descs = {name: place.desc for name, place in sources.items()}
    desc = BinaryForward(SIMPLE[first.op], descs["src0"], descs["src1"], row_major(shape))
    steps.add(group.nodes, group.label, desc, {**sources, **tail.places()}, {"dst": group.result}, attr=tail.attr())
