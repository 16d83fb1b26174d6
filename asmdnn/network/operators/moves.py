"""Operators that change dims, or the places of elements, and compute nothing."""

from math import prod

import numpy as np

from asmdnn.errors import counted
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import (
    Operator,
    Shape,
    Type,
    Value,
    axes_of,
    axis_of,
    bounded,
    broadcast_dims,
    ints,
    normal,
    number,
    same_as_first,
)
from asmdnn.network.operators.spans import chosen

PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def reshaped(node: Node, dims: Shape, wanted: Shape) -> Shape:
    """ONNX's dims of a Reshape: 0 is the input's, -1 what is left."""
    if not node.get("allowzero", 0):
        wanted = tuple(dims[i] if n == 0 else n for i, n in enumerate(wanted))
    if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
        raise ValueError(f"no dims {wanted}")
    known = prod(n for n in wanted if n != -1)
    return tuple((prod(dims) // known if known else 0) if n == -1 else n for n in wanted)


def reshape(node: Node, x: Array, shape: Array) -> Array:
    return x.reshape(reshaped(node, x.shape, ints(shape)))


def reshape_types(node: Node, x: Value, shape: Value) -> list[Type]:
    dims = reshaped(node, x.shape, ints(shape.data))
    if prod(dims) != prod(x.shape):
        raise ValueError(f"dims {x.shape} cannot become {dims}")
    return [(dims, x.dtype)]


def flat_shape(node: Node, dims: Shape) -> Shape:
    axis = node.get("axis", 1)
    if not -len(dims) <= axis <= len(dims):
        raise ValueError(f"axis {axis} is none of {len(dims)}")
    axis += len(dims) if axis < 0 else 0
    return prod(dims[:axis]), prod(dims[axis:])


def squeezed(node: Node, dims: Shape, given: Array | None) -> Shape:
    axes = axes_of(node, given, len(dims))
    if axes is None:
        return tuple(n for n in dims if n != 1)
    if any(dims[axis] != 1 for axis in axes):
        raise ValueError(f"dims {dims} are not 1 at axes {axes}")
    return tuple(n for i, n in enumerate(dims) if i not in axes)


def unsqueezed(node: Node, dims: Shape, given: Array | None) -> Shape:
    axes = node.get("axes", ()) if given is None else ints(given)
    ndim = len(dims) + len(axes)
    new, rest = {normal(axis, ndim) for axis in axes}, iter(dims)
    if len(new) < len(axes):
        raise ValueError(f"axes {axes} are not different ones")
    return tuple(1 if i in new else next(rest) for i in range(ndim))


def squeeze_types(node: Node, x: Value, axes: Value | None = None) -> list[Type]:
    return [(squeezed(node, x.shape, axes and axes.data), x.dtype)]


def unsqueeze_types(node: Node, x: Value, axes: Value | None = None) -> list[Type]:
    return [(unsqueezed(node, x.shape, axes and axes.data), x.dtype)]


def permutation(node: Node, ndim: int) -> tuple[int, ...]:
    """Which axis each axis of the result is."""
    return tuple(node.get("perm", range(ndim)[::-1]))


def transpose_types(node: Node, x: Value) -> list[Type]:
    order = permutation(node, len(x.shape))
    if sorted(order) != list(range(len(x.shape))):
        raise ValueError(f"perm {order} is no order of {len(x.shape)} axes")
    return [(tuple(x.shape[axis] for axis in order), x.dtype)]


def concat_types(node: Node, *values: Value) -> list[Type]:
    first, axis = values[0].shape, axis_of(node, len(values[0].shape), 1)
    for value in values:
        if len(value.shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(value.shape, first, strict=True)) if i != axis
        ):
            raise ValueError(f"dims {value.shape} do not go after {first} along axis {axis}")
    total = sum(value.shape[axis] for value in values)
    return [((*first[:axis], total, *first[axis + 1 :]), values[0].dtype)]


def split_sizes(node: Node, total: int, sizes: Array | None) -> tuple[int, ...]:
    """How long the pieces are."""
    given = node.get("split") if sizes is None else ints(sizes)
    if given is None:
        count = node.get("num_outputs", len(node.outputs))
        if count != len(node.outputs):
            raise ValueError(f"num_outputs {count} for {counted(len(node.outputs), 'output')}")
        piece = -(-total // count)
        given = (*[piece] * (count - 1), total - piece * (count - 1))
    if sum(given) != total or any(n < 0 for n in given) or len(given) != len(node.outputs):
        raise ValueError(f"pieces of {given} do not make {total} in {counted(len(node.outputs), 'output')}")
    return tuple(given)


def split(node: Node, x: Array, sizes: Array | None = None) -> tuple[Array, ...]:
    axis = axis_of(node, x.ndim, 0)
    return tuple(np.split(x, np.cumsum(split_sizes(node, x.shape[axis], sizes))[:-1], axis))


def split_types(node: Node, x: Value, sizes: Value | None = None) -> list[Type]:
    axis = axis_of(node, len(x.shape), 0)
    found = split_sizes(node, x.shape[axis], sizes and sizes.data)
    return [((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype) for size in found]


INT_MAX = (2**31 - 1, 2**63 - 1)  # an end of Slice that means all that is left
INT_MIN_BACKWARD = 11  # the operator set since which it does so forward alone


def slices(node: Node, dims: Shape, *inputs: Array | None) -> tuple[slice, ...]:
    """Of every axis."""
    starts, ends, axes, steps = (None if x is None else ints(x) for x in (*inputs, None, None, None, None)[:4])
    starts, ends = starts or node.get("starts", ()), ends or node.get("ends", ())
    axes = axes or node.get("axes")
    axes = tuple(range(len(starts))) if axes is None else axes
    found = [slice(None)] * len(dims)
    for start, end, axis, step in zip(starts, ends, axes, steps or (1,) * len(starts), strict=True):
        n, axis = dims[normal(axis, len(dims))], normal(axis, len(dims))
        if step < 0 and end in INT_MAX and node.opset < INT_MIN_BACKWARD:
            end = -n - 1
        start, end = (position + n if position < 0 else position for position in (start, end))
        if step > 0:
            found[axis] = slice(min(max(start, 0), n), min(max(end, 0), n), step)
        else:
            last = min(max(end, -1), n - 1)
            found[axis] = slice(min(max(start, 0), n - 1), None if last < 0 else last, step)
    return tuple(found)


def slice_types(node: Node, x: Value, *inputs: Value | None) -> list[Type]:
    found = slices(node, x.shape, *(None if value is None else value.data for value in inputs))
    return [(tuple(chosen(n, part).size for n, part in zip(x.shape, found, strict=True)), x.dtype)]


def expand_types(node: Node, x: Value, shape: Value) -> list[Type]:
    return [(broadcast_dims(x.shape, ints(shape.data)), x.dtype)]


def tile_types(node: Node, x: Value, repeats: Value) -> list[Type]:
    return [(bounded(tuple(n * m for n, m in zip(x.shape, ints(repeats.data), strict=True))), x.dtype)]


def pad_widths(node: Node, ndim: int, pads: Array | None, axes: Array | None) -> list[tuple[int, int]]:
    """(in front, after) of every axis; negative ones cut off."""
    given = node.get("pads", ()) if pads is None else ints(pads)
    chosen = range(ndim) if axes is None else axes_of(node, axes, ndim) or ()
    if len(given) != 2 * len(chosen):
        raise ValueError(f"{len(given)} pads for {len(chosen)} axes")
    widths = [(0, 0)] * ndim
    for i, axis in enumerate(chosen):
        widths[axis] = (given[i], given[i + len(chosen)])
    return widths


def pad(
    node: Node, x: Array, pads: Array | None = None, value: Array | None = None, axes: Array | None = None
) -> Array:
    widths = pad_widths(node, x.ndim, pads, axes)
    kept = tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, widths, strict=True))
    positive = [(max(0, a), max(0, b)) for a, b in widths]
    mode = PAD_MODES[node.get("mode", "constant")]
    if mode != "constant":
        return np.pad(x[kept], positive, mode)  # type: ignore[call-overload,no-any-return]
    fill = node.get("value", 0.0) if value is None else number(value)
    return np.pad(x[kept], positive, constant_values=fill)


def pad_types(
    node: Node, x: Value, pads: Value | None = None, value: Value | None = None, axes: Value | None = None
) -> list[Type]:
    given, chosen = (None if one is None else one.data for one in (pads, axes))
    widths = pad_widths(node, len(x.shape), given, chosen)
    if value is not None and prod(value.shape) != 1:
        raise ValueError(f"a value of dims {value.shape}, which must be one number")
    dims = tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True))
    if any(max(0, -a) + max(0, -b) > n for n, (a, b) in zip(x.shape, widths, strict=True)):
        raise ValueError(f"pads {widths} cut off more than dims {x.shape} have")
    if node.get("mode", "constant") != "constant" and any(n < m for n, m in zip(x.shape, dims, strict=True) if not n):
        raise ValueError(f"dims {x.shape} have nothing that padding could repeat")
    return [(bounded(dims), x.dtype)]


def depth_to_space(node: Node, x: Array) -> Array:
    b, (n, c, h, w) = node.get("blocksize"), x.shape
    if node.get("mode", "DCR") == "DCR":
        return x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)
    return x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // b**2, h * b, w * b)


def block_of(node: Node, x: Value) -> tuple[int, Shape]:
    """The size of blocks, and the dims of an image."""
    b = node.get("blocksize")
    if b < 1 or len(x.shape) != 4:
        raise ValueError(f"blocks of {b} in dims {x.shape}, which must be four")
    return b, x.shape


def depth_types(node: Node, x: Value) -> list[Type]:
    b, (n, c, h, w) = block_of(node, x)
    if c % b**2:
        raise ValueError(f"{c} channels are no multiple of {b} times {b}")
    return [((n, c // b**2, h * b, w * b), x.dtype)]


def space_types(node: Node, x: Value) -> list[Type]:
    b, (n, c, h, w) = block_of(node, x)
    if h % b or w % b:
        raise ValueError(f"an image of {h} x {w} is no multiple of {b}")
    return [((n, c * b**2, h // b, w // b), x.dtype)]


def space_to_depth(node: Node, x: Array) -> Array:
    b, (n, c, h, w) = node.get("blocksize"), x.shape
    order = (0, 3, 5, 1, 2, 4) if node.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return x.reshape(n, c, h // b, b, w // b, b).transpose(order).reshape(n, c * b**2, h // b, w // b)


OPERATORS = {
    "Identity": Operator(lambda node, x: x, same_as_first),
    "Reshape": Operator(reshape, reshape_types, (1,)),
    "Flatten": Operator(
        lambda node, x: x.reshape(flat_shape(node, x.shape)), lambda node, x: [(flat_shape(node, x.shape), x.dtype)]
    ),
    "Squeeze": Operator(lambda node, x, axes=None: x.reshape(squeezed(node, x.shape, axes)), squeeze_types, (1,)),
    "Unsqueeze": Operator(lambda node, x, axes=None: x.reshape(unsqueezed(node, x.shape, axes)), unsqueeze_types, (1,)),
    "Transpose": Operator(lambda node, x: x.transpose(permutation(node, x.ndim)), transpose_types),
    "Concat": Operator(lambda node, *x: np.concatenate(x, normal(node.get("axis", 1), x[0].ndim)), concat_types),
    "Split": Operator(split, split_types, (1,)),
    "Slice": Operator(lambda node, x, *inputs: x[slices(node, x.shape, *inputs)], slice_types, (1, 2, 3, 4)),
    "Expand": Operator(
        lambda node, x, shape: np.broadcast_to(x, broadcast_dims(x.shape, ints(shape))),
        expand_types,
        (1,),
    ),
    "Tile": Operator(lambda node, x, repeats: np.tile(x, ints(repeats)), tile_types, (1,)),
    "Pad": Operator(pad, pad_types, (1, 3)),
    "DepthToSpace": Operator(depth_to_space, depth_types),
    "SpaceToDepth": Operator(space_to_depth, space_types),
}
