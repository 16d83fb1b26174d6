"""Recurrent layers of f32 whose factors become bf16, where attributes allow that: `fpmath_mode`.

Rows and weights are rounded in front, and steps hand on h as bf16; sums, bias and an LSTM's c stay f32.  Weights that
are `any` are packed as bf16, once.
"""

from collections.abc import Iterator

from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, try_all
from asmdnn.primitives.recurrent import forward
from asmdnn.primitives.recurrent.description import RecurrentForward
from asmdnn.primitives.recurrent.factors import WEIGHTS
from asmdnn.primitives.recurrent.qparams import ROWS
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.reorder.fpmath import BOTH_BF16, ROUNDINGS
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import replace
from asmdnn.types import f32

PAIRS = "pairs"


def plans(desc: RecurrentForward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """What multiplies pairs of the rounded numbers; nothing where no rounding is allowed, or nothing is to be
    rounded, or the backward pass, which has f32, reads what is left."""
    rows = {name: tensor for name, tensor in desc.tensors().items() if name in ROWS}
    weights = {name: tensor for name, tensor in desc.tensors().items() if name in WEIGHTS}
    rounding, factors = BOTH_BF16, {tensor.dtype for tensor in weights.values()}
    is_f32 = all(tensor.dtype == f32 for tensor in rows.values()) and factors <= {f32, rounding.weights}
    if BOTH_BF16 not in ROUNDINGS.get(attr.fpmath_mode, ()) or not is_f32 or desc.is_training:
        return
    wanted = {name: MemoryDesc(tensor.dims, rounding.src, "any") for name, tensor in rows.items()}
    for name, tensor in weights.items():
        is_rounded = tensor.dtype == rounding.weights
        wanted[name] = tensor if is_rounded else MemoryDesc(tensor.dims, rounding.weights, "any")
    for answer in try_all((forward.plans,), desc.with_formats(wanted), attr.strict, engine):
        name = f"{rounding.word}+{answer.implementation}"
        if isinstance(answer, Plan) and PAIRS in name:
            yield replace(as_passed(answer, desc, engine), implementation=name)
        elif isinstance(answer, Refusal) and PAIRS in name:
            yield Refusal(name, answer.reason)


def as_passed(plan: Plan, desc: RecurrentForward, engine: Engine) -> Plan:
    """The plan between what rounds and widens tensors that are passed as f32."""
    passed = {name: tensor for name, tensor in desc.tensors().items() if not tensor.is_any}
    passed |= {name: of_type(plan.tensors[name], f32) for name in ROWS if name in plan.tensors and name not in passed}
    return between_reorders(plan, passed, engine.tuning, isa=engine.isa)
