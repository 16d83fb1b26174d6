"""Shuffle: the indices of one axis, read as a matrix, transposed.

    dst(ou, c, in) = src(ou, c', in),   c = u + v * C/G,   c' = u * G + v,   0 <= u < C/G, 0 <= v < G

with C the size of `axis` and G = `group_size`: src's axis is C/G rows of G, dst's is G rows of C/G.  Source: oneDNN's
shuffle.  ShuffleNet (Zhang et al. 2017) counts the other way: its g groups of C/g channels are group_size = C/g.

    ShuffleNet, g = 3    src  a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3
    group_size = 4       dst  a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3

The backward pass moves gradients back: `src` is then diff_dst, `dst` is diff_src, and G is replaced by C/G.
"""

from functools import partial

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.attributes.numbers import FORWARD, check_prop_kind
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied
from asmdnn.primitives.shapes.formats import like
from asmdnn.primitives.shapes.tensors import check_descs, refuse_overlap
from asmdnn.primitives.shuffle.schedule import WAYS, ShuffledDim, schedule
from asmdnn.records import dataclass
from asmdnn.types import PropKind


@dataclass(frozen=True, slots=True)
class Shuffle:
    """As the module says; src and dst have the same dims and type, in any formats; a dst of format `any` takes src's.

    axis: -1 is the last one.  Raises InvalidArguments for a group_size that does not divide the axis, an axis that
    src does not have, dims or types that differ, and a src of format any.
    """

    src: MemoryDesc
    dst: MemoryDesc
    axis: int
    group_size: int
    prop_kind: PropKind = PropKind.forward_inference

    def __post_init__(self) -> None:
        check_descs(self, "src", "dst")
        if self.src.is_any:
            raise InvalidArguments("src has the format any, a shuffle needs a real one: dst alone may have any")
        if (self.src.dims, self.src.dtype) != (self.dst.dims, self.dst.dtype):
            raise InvalidArguments(f"dst is {self.dst}, src is {self.src}: a shuffle keeps dims and type")
        check_prop_kind(self.prop_kind, (*FORWARD, PropKind.backward_data))
        for name in ("axis", "group_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise InvalidArguments(f"{name} must be an integer, not {shown(value)}")
            object.__setattr__(self, name, int(value))
        ndims = self.src.ndims
        if not -ndims <= self.axis < ndims:
            raise InvalidArguments(
                f"axis is {shown(self.axis)}, src has {counted(ndims, 'dim')}: use {-ndims} to {ndims - 1}"
            )
        object.__setattr__(self, "axis", self.axis % ndims)
        if self.group_size < 1 or self.size % self.group_size:
            raise InvalidArguments(
                f"group_size is {shown(self.group_size)}, it must divide axis {self.axis} of {self.size}"
            )

    @property
    def size(self) -> int:
        """C, the size of the axis."""
        return self.src.dims[self.axis]

    @property
    def rows(self) -> int:
        """The rows of the matrix that dst's axis is."""
        backward = self.prop_kind == PropKind.backward_data
        return self.size // self.group_size if backward else self.group_size

    def __str__(self) -> str:
        into = "" if self.src == self.dst else f" to {self.dst}"
        return f"{self.prop_kind.value} shuffle of {self.src}{into}, axis {self.axis}, group_size {self.group_size}"


@dataclass(frozen=True, slots=True)
class ShuffleRequest:
    """What is asked of a shuffle: src as it is passed, and dst, between whose elements kernels move."""

    desc: Shuffle
    dst: MemoryDesc
    engine: Engine

    def plan(self, way: str) -> Plan:
        """Of a src in dst's format.  Raises Refused."""
        dst, engine = self.dst, self.engine
        phases = schedule(way, ShuffledDim(dst, self.desc.axis, self.desc.rows), engine.tuning, engine.isa)
        return Plan(f"{way}:{f32_level(engine.isa)}", tuple(phases), {"src": dst, "dst": dst}, {}, {}, ("dst",))

    def inside(self, way: str) -> Inside:
        """Raises Refused."""
        return Inside(self.plan(way), {"src": self.desc.src}, self.engine.tuning, self.engine.isa)


def request_of(desc: Shuffle, attr: Attr, engine: Engine) -> ShuffleRequest:
    """Raises Refused."""
    refuse_attr(attr, "a shuffle")
    dst = like(desc.dst if desc.src.may_overlap else desc.src, desc.dst)
    refuse_overlap(dst=dst)
    if dst.size_bytes > MAX_OFFSET and dst.strides[desc.axis] * dst.dims[desc.axis] > MAX_OFFSET:
        raise Refused("the shuffled axis spans more than 2 GiB")
    return ShuffleRequest(desc, dst, engine)


plans = ways_as_passed_or_copied(request_of, {way: partial(ShuffleRequest.inside, way=way) for way in WAYS}, f32_level)
