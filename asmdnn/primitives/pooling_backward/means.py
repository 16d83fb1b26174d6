"""Gradients of means: a depthwise deconvolution whose weights are all one number, a constant of the plan.

Where windows have different divisors, at edges and in ceil mode, diff_dst is divided first, and the weights are 1.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.generators.functions.postops import BinaryOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly, constant_words
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.convolution_backward.data import AdjointDeconvolution
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.primitives.deconvolution import kind as deconvolution
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.products.matrices import has_gaps
from asmdnn.primitives.shapes.formats import dense_like, of_type
from asmdnn.types import f32

Floats = npt.NDArray[np.float32]
Array = npt.NDArray[Any]
NAME = "means"
WEIGHTS, FACTORS = "weights of means", "factors of means"  # constants
DIVIDED = "divided"  # scratch


def plan(request: tuple[PoolingBackward, Engine]) -> Plan:
    """Raises Refused."""
    desc, engine = request
    if desc.forward().is_max:
        raise Refused("it is of means, alg is max")
    factors = factors_of(desc)
    same = bool((factors == factors.flat[0]).all())
    channels = desc.diff_src.dims[1]
    dims = (channels, 1, 1, *desc.kernel) if channels > 1 else (1, 1, *desc.kernel)
    adjoint = AdjointDeconvolution(
        src=desc.diff_dst if same else dense_in_f32(desc.diff_dst),
        weights=MemoryDesc(dims, f32, "any"),
        dst=desc.diff_src,
        **{name: getattr(desc, name) for name in ("strides", "dilations", "padding_l", "padding_r")},
    )
    inner = plan_of(deconvolution.PLANNERS, adjoint, engine)
    weights = inner.tensors["weights"]
    value = factors.flat[0] if same else np.float32(1)
    assembly = Assembly(engine.tuning, engine.isa)
    read = inner.tensors["src"]
    diff_dst = of_type(read, desc.diff_dst.dtype) if desc.diff_dst.is_any else desc.diff_dst
    tensors = {"diff_src": inner.tensors["dst"], "diff_dst": diff_dst}
    places = {"src": View("diff_dst"), "dst": View("diff_src"), "weights": View(WEIGHTS)}
    if not same:
        divide(assembly, diff_dst, read, factors, engine)
        places["src"] = View(DIVIDED)
    assembly.add_plan(inner, places)
    assembly.constants[WEIGHTS] = constant_words(Memory.from_numpy(np.full(dims, value, np.float32), weights).array)
    return assembly.plan(f"{NAME}:{f32_level(engine.isa)}", tensors, ("diff_src",))


def dense_in_f32(tensor: MemoryDesc) -> MemoryDesc:
    """As scratch, in which all is written: without the gaps that a tensor may have."""
    free = MemoryDesc(tensor.dims, f32, "any")
    if tensor.is_any:
        return free
    return dense_like(tensor, free) if has_gaps(tensor) else of_type(tensor, f32)


def factors_of(desc: PoolingBackward) -> Floats:
    """1 / divisor of every window of a plane."""
    forward, found = desc.forward(), np.ones((), np.float64)
    for axis in range(len(desc.kernel)):
        divisors = [run.window.divisor for run in forward.runs(axis) for _ in range(run.outputs)]
        found = np.multiply.outer(found, np.array(divisors, np.float64))
    return (1 / np.maximum(found, 1)).astype(np.float32)


def divide(assembly: Assembly, diff_dst: MemoryDesc, divided: MemoryDesc, factors: Floats, engine: Engine) -> None:
    """diff_dst times the factors, into scratch of f32."""
    plane = MemoryDesc((1, 1, *factors.shape), f32, LETTERS[: diff_dst.ndims])
    request = Request(
        "divided", ("diff_dst", diff_dst), ("dst", divided), {"factors": plane},
        lambda operands: BinaryOp("mul", operands["factors"]),
    )  # fmt: skip
    plan = schedule(request, NO_ATTR, engine)
    assembly.constants[FACTORS] = constant_words(factors.ravel())
    assembly.scratch[DIVIDED] = divided.size_bytes
    assembly.add_plan(plan, {"dst": View(DIVIDED), "factors": View(FACTORS, 0, factors.nbytes)})
