"""Each fused group against its operators in double precision, on the very operands that it got."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from asmdnn.network.cancellation import size_of_terms
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.joining.stepwise import Stepwise
from asmdnn.network.narrow.storage import StorageTypes
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.operators.few_bits import largest_sums
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantized.numbers import quantization_of
from asmdnn.network.quantized.weights import QUANTIZE
from asmdnn.network.saturation import cut_off
from asmdnn.network.static import StaticGraph
from asmdnn.records import dataclass, replace
from asmdnn.types import f16

UNIT_ROUNDOFF = 2.0**-24
# Of bf16 and of f16: an operand, a weight and the result, each by 2^-9 or 2^-12 of its value.
NARROW_ROUNDING, F16_ROUNDING = 2.0**-7, 2.0**-10
FUNCTIONS = 64  # roundings that maps, and transformed convolutions, may add
RECURRENT = ("LSTM", "GRU", "RNN")
SUMS = ("Conv", "ConvTranspose", "MatMul", "Gemm")  # what sums products
TOTALS = ("ReduceSum", "ReduceMean")  # of signed numbers, which may cancel
FEW_BITS = "MatMulNBits"
STEPS = ("Floor", "Ceil", "Round", "Sign", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
STEP_NUDGE = 2.0**-21  # some roundings of what is rounded to a step
UPDATED = f"{OWN}.ConvWeightsGradient"  # whose result no memory holds where maps follow
EMPTY = np.empty(0)


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference of a group's result, the bound that it must keep, and the largest value after both.

    Of integers both are in steps of their scale, and `unequal` is how many differ.  saturated: the share that the type
    cuts off, above, or below if the least integer stands for less than 0.  result: the value's name; share:
    the difference over the largest value of the result alone."""

    label: str
    implementation: str
    difference: float
    bound: float
    largest: float
    unequal: int = 0
    saturated: float = 0.0
    result: str = ""
    share: float = 0.0

    @property
    def fits(self) -> bool:
        return self.difference <= self.bound

    def __str__(self) -> str:
        words = f"{self.label} ({self.implementation})"
        cut = f", {self.unequal} unequal" if self.unequal else ""
        cut += f", {self.saturated:.2%} saturated" if self.saturated else ""
        return f"{words}: differs by {self.difference:.2e} of {self.largest:.2e}, bound {self.bound:.2e}{cut}"

    __repr__ = __str__


class ExaminedGroup(NamedTuple):
    """native: what the primitive made, in the dims and the order of the operator."""

    group: Group
    native: Array
    difference: Difference


def differences(graph: StaticGraph, run: Stepwise, feeds: Mapping[str, Array]) -> list[ExaminedGroup]:
    """Of every group of a segment, in order; later ones get what earlier ones have made."""
    known: dict[str, Array] = dict(feeds)
    known |= {name: value.data for name, value in graph.values.items() if value.data is not None}
    known = {name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in known.items()}
    made = {name: (step, array) for step, name, array in run.results()}
    found = []
    for group in run.segment.segment.groups:
        inner = evaluated(group, known)
        largest = max(magnitude(group, {**known, **inner}), *map(largest_number, inner.values()))
        bound = UNIT_ROUNDOFF * (terms(graph, group) + FUNCTIONS) * largest
        rounded = max(largest, gates(group, {**known, **inner}))
        bound += rerounded(group, known)
        bound += rounded * narrow_rounding(run.segment.segment.storage, group)
        for name in (group.result, *further_results(group)):
            step, array = made.get(name, (None, EMPTY))
            exact = inner[name]
            if step is None or array.size != exact.size or is_permuted(group):
                continue
            native = in_order(group, array).reshape(exact.shape).astype(np.float64)
            worst = min(distance(native, exact), off_a_step(group, known, name, native))
            if group.main is not None and group.main.key == UPDATED and group.maps:
                near = [inner[group.x] + error for error in (-bound, 0.0, bound)]
                worst = min(worst, off_an_update(group, known, name, native, near))
            difference = Difference(
                group.label,
                step.pd.implementation,
                worst,
                bound=in_steps(graph, group, bound),
                largest=largest,
                unequal=int((native != exact).sum()) if exact.dtype.kind in "iu" else 0,
                saturated=cut_off(graph, group.nodes, {**known, **inner}),
                result=name,
                share=worst / (largest_number(exact) or 1.0),
            )
            found.append(ExaminedGroup(group, native, difference))
            inner[name] = native.astype(exact.dtype) if exact.dtype.kind in "iu" else native
        known |= inner
    return found


def further_results(group: Group) -> tuple[str, ...]:
    """What one of the library's own operators makes beside its first result, in the order in which it lies, or what
    maps do."""
    node = group.main
    if group.further or node is None or node.domain != OWN:
        return group.further
    return tuple(name for name in node.outputs[1:] if name != NOTHING)


def off_a_step(group: Group, known: Mapping[str, Array], name: str, native: Array) -> float:
    """The largest difference where a rounding may decide between two steps, such as those of Floor: each element is
    compared with the steps on both sides of what is rounded."""
    made = {x for node in group.nodes for x in node.outputs}
    if not any(node.op in STEPS and node.inputs[0] in made for node in group.nodes):
        return np.inf
    sides = [evaluated(group, known, nudge)[name].astype(np.float64) for nudge in (-STEP_NUDGE, 0.0, STEP_NUDGE)]
    nearest = np.argmin([np.abs(native - side.reshape(native.shape)) for side in sides], 0)
    return distance(native, np.choose(nearest, [side.reshape(native.shape) for side in sides]))


def off_an_update(
    group: Group, known: Mapping[str, Array], name: str, native: Array, gradients: Sequence[Array]
) -> float:
    """The largest difference from what maps make of some gradients, and of those between: an optimizer divides them by
    their size, and where that is next to nothing, one of them may have another sign."""
    maps = replace(group, main=None)
    made = [evaluated(maps, {**known, group.x: x})[name].astype(np.float64) for x in gradients]
    return distance(native, np.clip(native, np.minimum.reduce(made), np.maximum.reduce(made)))


def evaluated(group: Group, known: Mapping[str, Array], nudge: float = 0.0) -> dict[str, Array]:
    """All values of a group by its operators' definitions.  nudge: by which share to move what steps are made of."""
    values: dict[str, Array] = {}
    for node in group.nodes:
        inputs = [None if x == NOTHING else values.get(x, known.get(x)) for x in node.inputs]
        if nudge and node.op in STEPS and node.inputs[0] in values:
            inputs[0] = np.asarray(values[node.inputs[0]] * (1 + nudge))
        values |= {name: x for name, x in zip(node.outputs, results_of(node, inputs), strict=False) if name != NOTHING}
    return values


def magnitude(group: Group, known: Mapping[str, Array]) -> float:
    """What the terms of the main node's sums add up to at most, without their signs."""
    node = group.main
    if node is not None and node.op == FEW_BITS:
        return largest_number(largest_sums(node, *(known[x] for x in node.inputs)))
    if node is not None and node.domain == OWN:
        return size_of_terms(node, *(known[x] for x in node.inputs if x != NOTHING))
    if node is None or node.op not in SUMS + TOTALS:
        return 0.0
    inputs = [None if x == NOTHING else known[x] for x in node.inputs]
    inputs = [x if x is None or x.dtype.kind != "f" else np.abs(x) for x in inputs]  # axes stay
    return max(map(largest_number, results_of(node, inputs)))


def gates(group: Group, known: Mapping[str, Array]) -> float:
    """What roundings of a recurrent layer's operands do to its gates, over one rounding: they are independent of one
    another, in a sum and in steps one after another."""
    node = group.main
    if node is None or node.key not in RECURRENT or group.result == NOTHING:
        return 0.0
    x, w, r = (known[name].astype(np.float64) for name in node.inputs[:3])
    rows = np.einsum("tni,dgi->tndg", x**2, w**2).max(initial=0)
    states = (r**2).sum(-1).max(initial=0) * np.abs(known[group.result]).max(initial=0) ** 2
    return float(np.sqrt((rows + states) * max(x.shape[:2])))


def rerounded(group: Group, known: Mapping[str, Array]) -> float:
    """What an h that is rounded to another byte in every step does to gates: h is at most 1."""
    node = group.main
    if node is None or node.key != f"{OWN}.DynamicQuantizeLSTM":
        return 0.0
    x, _, r, _, scales = (known[name] for name in node.inputs[:5])
    return float(len(x) * 2 / 255 * (np.abs(r.astype(np.float64)).max(-1) * scales).max())


def largest_number(x: Array) -> float:
    """Of the finite ones: minus infinity hides keys in masks."""
    return float(np.abs(x).max(initial=0, where=np.isfinite(x)))


def distance(native: Array, exact: Array) -> float:
    """The largest difference; equal infinities and NaN in the same places are none, others infinite."""
    differs = (native != exact) & ~(np.isnan(native) & np.isnan(exact))
    with np.errstate(invalid="ignore"):
        off = np.abs(native - exact)[differs]
    return float(np.where(np.isnan(off), np.inf, off).max(initial=0))


def is_narrow(storage: StorageTypes, group: Group) -> bool:
    """Whether it multiplies, reads or makes values that are kept in fewer bits than f32."""
    return narrow_rounding(storage, group) > 0


def narrow_rounding(storage: StorageTypes, group: Group) -> float:
    """What fewer bits than f32 may do, as a share of the largest value."""
    names = {group.result, *(name for node in group.nodes for name in (*node.inputs, *node.outputs))}
    found = {
        types[name]
        for types in (storage.products, storage.weights)
        for name in (group.x, group.result)
        if name in types
    }
    found |= {storage.values[name] for name in names & storage.values.keys()}
    return max((F16_ROUNDING if dtype == f16 else NARROW_ROUNDING for dtype in found), default=0.0)


def in_steps(graph: StaticGraph, group: Group, bound: float) -> float:
    """The bound where there are integers: another rounding of each of them is a step, and the result counts steps."""
    scales = [quantization_of(graph.values, node).scale.max() for node in group.maps if node.op == QUANTIZE]
    bound += float(sum(scales))
    if group.main is not None and group.main.op == QUANTIZE:  # of data: the result counts steps
        bound += 1.0
    return bound / float(scales[-1]) if group.maps and group.maps[-1].op == QUANTIZE else bound


def terms(graph: StaticGraph, group: Group) -> int:
    """How many terms an element is the sum of."""
    node = group.main
    if node is not None and node.op in TOTALS:
        return prod(graph.shape(node.inputs[0])) // max(1, prod(graph.shape(node.outputs[0])))
    if node is None or node.op not in SUMS:
        return prod(graph.shape(node.inputs[0])[1:]) if node is not None else 1
    weights = graph.shape(node.inputs[1])
    return prod(weights[1:]) if node.op == "Conv" else prod(weights[:1]) * prod(weights[2:])


def in_order(group: Group, array: Array) -> Array:
    """The result of a primitive with its elements in the operator's order."""
    is_product = group.main is not None and group.main.op == "Conv" and array.ndim == 2  # [windows, channels]
    return array.T if is_product else array


def is_permuted(group: Group) -> bool:
    """Whether the primitive's result has its elements in another order than the operator's."""
    node: Node | None = group.main
    return node is not None and node.get("direction") == "bidirectional"
