"""The maps after a kernel that reads integers, or whose result is integers, as a post-op."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.expressions import EXPRESSIONS
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.forms import ONE, ZERO, Emit, Reading, ScaledSum, Sealing, read, value_of
from asmdnn.network.lowering.maps import Adapt, Tail
from asmdnn.network.operators.activations import CLIP_BY_INPUTS
from asmdnn.network.quantized.numbers import common_numbers, quantization_of
from asmdnn.network.quantized.weights import DEQUANTIZE, QUANTIZE
from asmdnn.network.steps import Steps
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.functions import maximum, minimum, rint
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.records import dataclass, field

SUMS = "sums"  # a tensor's name in post-ops


@dataclass(frozen=True, eq=False)
class Start:
    """What the kernel's own result x stands for: scale x + shift, f64 that broadcast to the result.  sums: a tensor
    that is added, by a factor of its own."""

    scale: Array = field(default_factory=lambda: ONE)
    shift: Array = field(default_factory=lambda: ZERO)
    sums: Place | None = None
    factor: Array = field(default_factory=lambda: ZERO)

    @property
    def terms(self) -> tuple[tuple[Emit, Array], ...]:
        own = ((read("x"), self.scale),)
        return own if self.sums is None else (*own, (read(SUMS), self.factor))


AS_IT_IS = Start()


class IntegerTail:
    """As Tail.  reads_bytes: whether the primitive's post-ops read tensors of bytes."""

    def __init__(
        self, steps: Steps, group: Group, adapt: Adapt | None, start: Start = AS_IT_IS, reads_bytes: bool = False
    ) -> None:
        self.steps, self.group, self.start, self.reads_bytes = steps, group, start, reads_bytes
        self.adapt = adapt or (lambda dims: dims)
        self.ndim = len(steps.shape(group.result))
        self.tensors: list[str] = []  # the values that are read, then the constants
        self.sealing = Sealing()
        self.forms = {group.x: ScaledSum(start.terms, start.shift)}
        for node in group.maps:
            self.forms[node.outputs[0]] = self.form(node)
        self.is_x = not group.maps and start is AS_IT_IS
        self.emit = self.sealing.expression(self.forms[group.result])
        self.numbers = [self.constant(i, array) for i, array in enumerate(self.sealing.arrays)]

    def operand(self, name: str) -> ScaledSum:
        """A value as it is known or read."""
        if name in self.forms:
            return self.forms[name]
        data = self.steps.value(name).data
        if data is not None:
            self.forms[name] = ScaledSum((), self.spread(np.asarray(data, np.float64)))
            return self.forms[name]
        node = self.steps.dequantizers.get(name)
        found = common_numbers(self.steps.graph.values, node) if node is not None else None
        self.tensors.append(name)
        term = read(f"t{len(self.tensors) - 1}")
        if found is not None and self.reads_bytes:
            scale, zero = found.scale.reshape(()), found.zero.reshape(())
            self.forms[name] = ScaledSum(((term, scale),), -scale * zero)
        else:
            self.forms[name] = value_of(term)
        return self.forms[name]

    def spread(self, array: Array) -> Array:
        return array.reshape((1,) * (self.ndim - array.ndim) + array.shape) if array.size > 1 else array.reshape(())

    def sealed(self, form: ScaledSum) -> ScaledSum:
        return value_of(self.sealing.expression(form))

    def form(self, node: Node) -> ScaledSum:
        """The result of a map."""
        if node.op in (QUANTIZE, DEQUANTIZE):
            return self.converted(node)
        operands = [self.operand(name) for name in node.inputs if name != NOTHING]
        first, *others = operands
        if node.op == "Relu":
            return first.clipped(0.0, None)
        if (
            node.op == "Clip"
            and node.opset >= CLIP_BY_INPUTS
            and all(x.is_constant and not x.shift.ndim for x in others)
        ):
            least, most = (None if name == NOTHING else float(self.operand(name).shift) for name in self.bounds(node))
            return first.clipped(least, most)
        if node.op in ("Add", "Sub") and len(others) == 1:
            return self.sum(first, others[0], -ONE if node.op == "Sub" else ONE)
        if node.op in ("Mul", "Div") and len(others) == 1:
            scaled = self.scaled(node.op, first, others[0])
            if scaled is not None:
                return scaled
        inputs = [None if name == NOTHING else self.sealing.expression(self.operand(name)) for name in node.inputs]
        return value_of(applied(node, inputs))

    def bounds(self, node: Node) -> tuple[str, str]:
        return (*node.inputs[1:], NOTHING, NOTHING)[:2]  # type: ignore[return-value]

    def sum(self, a: ScaledSum, b: ScaledSum, sign: Array) -> ScaledSum:
        if b.is_constant:
            return a.plus(sign * b.shift)
        if a.is_constant and sign > 0:
            return b.plus(a.shift)
        a, b = (self.sealed(form) if form.is_bounded else form for form in (a, b))
        b = b.times(sign)
        return ScaledSum((*a.terms, *b.terms), a.shift + b.shift)

    def scaled(self, op: str, a: ScaledSum, b: ScaledSum) -> ScaledSum | None:
        """A form times or through a constant; None if it is something else."""
        if a.is_constant and op == "Mul":
            a, b = b, a
        if not b.is_constant or a.is_constant or (op == "Div" and not b.shift.all()):
            return None
        factor = b.shift if op == "Mul" else 1 / b.shift
        return (self.sealed(a) if a.is_bounded and not (factor > 0).all() else a).times(factor)

    def converted(self, node: Node) -> ScaledSum:
        """Integers of floats, or floats of integers.  Only the last ones are rounded and saturated by the store."""
        form, numbers = self.operand(node.inputs[0]), quantization_of(self.steps.graph.values, node)
        scale, zero = (x.reshape(()).astype(np.float64) for x in (numbers.scale, numbers.zero))
        if node.op == DEQUANTIZE:
            return form.plus(-zero).times(scale)
        if len(self.group.maps) == 1 and self.start is AS_IT_IS:
            return value_of(exactly_quantized(float(scale), float(zero)))
        if node.outputs[0] == self.group.result:
            return form.times(1 / scale).plus(zero).saturated(*numbers.limits)
        least, most = (float(limit - zero) for limit in numbers.limits)
        emit = self.sealing.expression(form.times(1 / scale).saturated(least, most))
        return value_of(lambda reading: minimum(maximum(rint(emit(reading)), least), most)).plus(zero)

    def constant(self, number: int, array: Array) -> Place:
        """Numbers of channels, as a tensor."""
        found = self.spread(array)
        dims = self.adapt((1,) * (self.ndim - found.ndim) + found.shape)
        name, numbers = f"{self.group.result}, numbers {number}", found.reshape(dims)
        return self.steps.memory.add_weight(name, numbers, row_major(dims))

    def attr(self) -> Attr:
        return Attr(self.post_ops())

    def post_ops(self) -> list[AnyPostOp]:
        if self.is_x:
            return []
        return [PostOp(self.function, **{name: place.desc for name, place in self.read().items()})]

    def places(self) -> dict[str, Place]:
        """The arguments of the primitive."""
        return {f"{name}_0": place for name, place in self.read().items()}

    def read(self) -> dict[str, Place]:
        """What the post-op reads, by the names of its arguments."""
        tensors = {} if self.start.sums is None else {SUMS: self.start.sums}
        tensors |= {f"t{i}": self.place(name) for i, name in enumerate(self.tensors)}
        return tensors | {f"c{i}": place for i, place in enumerate(self.numbers)}

    def place(self, name: str) -> Place:
        """Where a tensor lies, with axes of 1 in front: its integers, if there are some and post-ops read them."""
        node = self.steps.dequantizers.get(name)
        if node is not None and self.reads_bytes and common_numbers(self.steps.graph.values, node) is not None:
            place, name = self.steps.bytes_of(node.inputs[0]), node.inputs[0]
        else:
            place = self.steps.place(name)
        dims = self.adapt((1,) * (self.ndim - len(place.desc.dims)) + place.desc.dims)
        return place if dims == place.desc.dims else self.steps.viewed(name, dims)

    def function(self, x: Any, **tensors: Any) -> Any:
        """All maps, of a traced value."""
        return self.emit(Reading({"x": x, **tensors}))


def applied(node: Node, inputs: list[Emit | None]) -> Emit:
    """A map of traced values, computed once."""

    def emit(reading: Reading) -> Any:
        if id(node) not in reading.made:
            values = [None if one is None else one(reading) for one in inputs]
            reading.made[id(node)] = EXPRESSIONS[node.op](node, *values)
        return reading.made[id(node)]

    return emit


def exactly_quantized(scale: float, zero: float) -> Emit:
    """x / scale, rounded before the zero point is added: the definition, halves to even."""

    def emit(reading: Reading) -> Any:
        quotient = reading.tensors["x"] / scale
        return rint(quotient) + zero if zero else quotient

    return emit


AnyTail = Tail | IntegerTail


def tail_of(
    steps: Steps,
    group: Group,
    adapt: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
    start: Start = AS_IT_IS,
    reads_bytes: bool = False,
) -> AnyTail:
    """The maps of a group as a post-op.  start: what the kernel's own result stands for."""
    if group.has_integers:
        return IntegerTail(steps, group, adapt, start, reads_bytes)
    return Tail(steps, group.maps, group.x, adapt, reads_bytes)
