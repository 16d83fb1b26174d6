"""What products of integers have in common: their operands, and the choice between integers and floats."""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.errors import AsmdnnError, PlanError
from asmdnn.isa.dot import U8S8, dot_class
from asmdnn.network.descriptors import STORED
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Array
from asmdnn.network.lowering.lowering import Lower
from asmdnn.network.quantized.numbers import Integers, around_zero, quantization_of
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass
from asmdnn.types import DataType, s8

MIDDLE = 128  # of uint8


@dataclass(frozen=True, eq=False)
class IntegerSource:
    """name: of the integers after an operand; floats: the operand's own."""

    name: str
    floats: str
    numbers: Integers

    @property
    def dtype(self) -> DataType:
        return STORED[self.numbers.dtype]

    @property
    def has_zero(self) -> bool:
        return bool(self.numbers.zero.any())

    @property
    def zero_points(self) -> Mapping[str, int]:
        """The attribute."""
        return {"src": 0} if self.has_zero else {}

    @property
    def constants(self) -> dict[str, tuple[str, Array]]:
        """The argument that it stands for."""
        return {"src_zero_points": (f"zero point of {self.floats}", self.numbers.zero)} if self.has_zero else {}


@dataclass(frozen=True, eq=False)
class SignedWeights:
    """array: s8, or s16 for kernels of f32; scale: f64, one number or one for each index of an axis; rest: what is
    left of their zero points, as many, None where nothing is."""

    name: str
    array: Array
    scale: Array
    rest: Array | None = None


def is_product_of_integers(steps: Steps, group: Group) -> bool:
    """Whether the first two operands of the main node are floats of integers."""
    return all(name in steps.dequantizers for name in group.node.inputs[:2])


def source_of(steps: Steps, floats: str) -> IntegerSource:
    """Raises Refused."""
    node = steps.dequantizers[floats]
    numbers = quantization_of(steps.graph.values, node)
    if not numbers.is_common:
        raise Refused(f"its operand {floats} has several scales, one for all has a kernel")
    return IntegerSource(node.inputs[0], floats, numbers)


def weights_of(steps: Steps, floats: str, axis: int, factors: DataType = s8) -> SignedWeights:
    """Constant integers with scales and zero points along an axis: less these, if that is signed bytes, else less the
    middle of their type.  factors: what they become; f32 holds all others, too.  Raises Refused."""
    node = steps.dequantizers[floats]
    numbers, data = quantization_of(steps.graph.values, node), steps.value(node.inputs[0]).data
    if data is None:
        raise Refused(f"its operand {node.inputs[0]} is no constant")
    if max(numbers.scale.size, numbers.zero.size) > 1 and numbers.axis != axis:
        raise Refused(f"its operand {floats} has a scale for each index of dim {numbers.axis}, not of {axis}")
    if not numbers.zero.any() and numbers.dtype == np.int8:
        return SignedWeights(node.inputs[0], data, numbers.scale)
    centred = around_zero(data, numbers, axis)
    signed = centred.astype(np.int8)
    if factors != s8 or (signed == centred).all():
        return SignedWeights(f"{floats} around 0", signed if factors == s8 else centred, numbers.scale)
    middle = MIDDLE if numbers.dtype == np.uint8 else 0
    array = (data.astype(np.int16) - middle).astype(np.int8)
    return SignedWeights(f"{node.inputs[0]} signed", array, numbers.scale, rest=(numbers.zero - middle).astype(float))


def bias_of(steps: Steps, name: str) -> Array:
    """f64.  Raises Refused for what is computed."""
    data = np.zeros(1) if name == NOTHING else steps.constant(name)
    if data is None:
        raise Refused(f"its bias {name} is no constant")
    return data.astype(np.float64)


def cheapest_way(steps: Steps, group: Group, ways: Sequence[Lower], takes_first: bool = False) -> None:
    """Add what is expected to take the fewest cycles, or the first way that has kernels.  Raises Refused, with
    the first reason, if none has."""
    found, reasons = list[tuple[float, int, Steps]](), list[str]()
    for number, way in enumerate(ways):
        trial, before = steps.branch(), len(steps.steps)
        try:
            way(trial, group)
        except PlanError:  # a defect, which another way would hide
            raise
        except (Refused, AsmdnnError) as reason:
            reasons.append(str(reason))
            continue
        found.append((sum(expected_cycles(step.pd, steps.engine) for step in trial.steps[before:]), number, trial))
        if takes_first:
            break
    if not found:
        raise Refused(reasons[0])
    steps.become(min(found, key=lambda one: one[:2])[2])


def expected_cycles(pd: PrimitiveDesc, engine: Engine) -> float:
    """Of a plan, and with the weights that L2 does not hold, whose bytes are what ways differ in most."""
    tensors, plan = pd.plan.tensors, pd.plan
    if "weights" not in tensors or not multiplies_words(engine):
        return plan.cycles
    weights = tensors["weights"]
    far = weights.size_bytes / engine.tuning.winograd.far_bytes_per_cycle * (weights.size_bytes > engine.l2_bytes)
    return plan.cycles + far


def multiplies_words(engine: Engine) -> bool:
    """Whether the level has no multiply of bytes."""
    return not dot_class(U8S8, engine.isa).is_native
