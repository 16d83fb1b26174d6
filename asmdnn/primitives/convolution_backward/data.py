"""Gradients of data by the forward plans of the adjoint: a deconvolution for a convolution, and the other way round.

The adjoint's source is diff_dst, its result diff_src, and its weights are these with input and output channels
exchanged, which is a matter of names, not of elements: `permute_axes`.  A deconvolution reads kernel positions from
after by itself.  Convolutions have two further ways: those that read one pixel are convolutions of diff_dst, whose
panels come in the better order; and 3x3 ones of stride 1 are Winograd convolutions of diff_dst with turned weights.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.isa.dot import f32_dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.memory.winograd import TAPS, WinogradDesc
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.convolution import kind as convolution
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution.pairs.pair import is_pair
from asmdnn.primitives.convolution.reordered import between_reorders
from asmdnn.primitives.convolution.winograd import plan as winograd
from asmdnn.primitives.convolution_backward.description import (
    BackwardData,
    ConvolutionBackwardData,
    DeconvolutionBackwardData,
)
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Planner, try_all
from asmdnn.primitives.deconvolution import kind as deconvolution
from asmdnn.primitives.reorder import copies
from asmdnn.records import replace
from asmdnn.types import Algorithm

NAMES = {"src": "diff_dst", "weights": "weights", "dst": "diff_src"}  # of the adjoint's tensors here


class AdjointConvolution(ConvolutionForward):
    """A convolution whose sizes the forward pass has checked: padding_r follows from them."""

    def _word(self) -> str:
        return "convolution"

    def _check_axis(self, axis: int, name: str) -> None:
        pass


class AdjointDeconvolution(DeconvolutionForward):
    """The same of a deconvolution."""

    def _word(self) -> str:
        return "deconvolution"

    def _check_axis(self, axis: int, name: str) -> None:
        pass


def plan_convolution(desc: ConvolutionBackwardData, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Every way to compute a gradient of a convolution's source, best first."""
    demanded = desc.algorithm == Algorithm.convolution_winograd or isinstance(desc.weights, WinogradDesc)
    if demanded or desc.algorithm == Algorithm.convolution_auto:
        yield from plan_winograd(desc, attr, engine)
    if demanded:
        return
    p = desc.forward()
    if {*p.kernel} == {*p.strides} == {1} and not any(p.padding_l):
        yield from by_planners(convolution.PLANNERS, AdjointConvolution, desc, attr, engine)
    else:
        yield from by_planners(deconvolution.PLANNERS, AdjointDeconvolution, desc, attr, engine)


def plan_deconvolution(desc: DeconvolutionBackwardData, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Every way to compute a gradient of a deconvolution's source, best first."""
    yield from by_planners(convolution.PLANNERS, AdjointConvolution, desc, attr, engine)


def by_planners(
    planners: tuple[Planner[Any], ...],
    form: type[AdjointConvolution | AdjointDeconvolution],
    desc: BackwardData,
    attr: Attr,
    engine: Engine,
) -> Iterator[Plan | Refusal]:
    """What forward planners answer for the adjoint; all of them refuse scales and zero points."""
    reason = reason_against(attr)
    adjoint = form(
        src=desc.diff_dst,
        weights=exchanged(desc.weights, desc.diff_dst.ndims),
        dst=desc.diff_src,
        **{name: getattr(desc, name) for name in ("strides", "dilations", "padding_l", "padding_r")},
    )
    for answer in try_all(planners, adjoint, NO_ATTR if reason else attr, engine):
        if reason:
            yield Refusal(answer.implementation, reason)
        else:
            yield renamed(answer, desc) if isinstance(answer, Plan) else answer


def reason_against(attr: Attr) -> str:
    """Empty for post-ops of elements, which diff_src gets as a result gets them, and for what changes nothing."""
    if is_pair(attr):
        return "a gradient has no depthwise post-op"
    return "a gradient has no scales or zero points" if attr.quantizes else ""


def renamed(plan: Plan, desc: BackwardData) -> Plan:
    """A plan of the adjoint with the names of the gradient."""
    places = {name: View(here) for name, here in NAMES.items() if here != name}
    tensors = {here: plan.tensors[name] for name, here in NAMES.items()}
    tensors["weights"] = exchanged(tensors["weights"], desc.diff_dst.ndims)
    read_behind = {name: tensor for name, tensor in plan.tensors.items() if name not in NAMES}
    order = ("diff_src", "weights", "diff_dst")
    return replace(
        plan,
        phases=tuple(phase.on(places) for phase in plan.phases),
        tensors={name: tensors[name] for name in order} | read_behind,
        outputs=("diff_src",),
        in_place=tuple((NAMES.get(x, x), NAMES.get(y, y)) for x, y in plan.in_place),
    )


def exchanged(weights: MemoryDesc, ndims: int) -> MemoryDesc:
    """The same weights with input and output channels exchanged, of tensors with `ndims` dims."""
    if isinstance(weights, WinogradDesc | KernelRowsDesc):
        return weights.adjoint
    groups = int(weights.ndims > ndims)
    axes = [*range(groups), groups + 1, groups, *range(groups + 2, weights.ndims)]
    return weights.permute_axes(axes)


def plan_winograd(desc: ConvolutionBackwardData, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """By Winograd's convolution of diff_dst, between reorders of activations or not."""
    for roles in ((), ("src", "dst")):
        words = ["pack"] * (not is_open(desc.weights)) + ["reorder"] * bool(roles) + ["winograd"]
        name = "+".join(words)
        try:
            if against := reason_against(attr):
                raise Refused(against)
            yield with_packing(desc, attr, engine, name, roles)
        except Refused as reason:
            yield Refusal(f"{name}:{f32_dot_level(engine.isa)}", str(reason))


def is_open(weights: MemoryDesc) -> bool:
    """Whether Winograd's convolution reads them in the format that it chooses."""
    return weights.is_any or isinstance(weights, WinogradDesc)


def with_packing(desc: ConvolutionBackwardData, attr: Attr, engine: Engine, name: str, roles: tuple[str, ...]) -> Plan:
    """The plan of that name; plain weights are transformed by a phase in front.  Raises Refused."""
    p = desc.forward()
    beyond = [*p.padding_l, *p.padding_r]
    if p.kernel != (TAPS, TAPS) or {*p.strides} != {1} or any(p.dilations) or max(beyond) >= TAPS:
        raise Refused("it is for dense 3x3 kernels of stride 1 with padding of at most 2")
    weights = desc.weights if is_open(desc.weights) else MemoryDesc(desc.weights.dims, desc.weights.dtype, "any")
    adjoint = AdjointConvolution(
        src=desc.diff_dst,
        weights=exchanged(weights, desc.diff_dst.ndims),
        dst=desc.diff_src,
        padding_l=tuple(TAPS - 1 - n for n in p.padding_l),
        padding_r=tuple(TAPS - 1 - n for n in p.padding_r),
        algorithm=desc.algorithm,
    )
    planned = partial(winograd.planned, packs=not is_open(desc.weights))
    plan = between_reorders(name, roles, adjoint, attr, engine, planned) if roles else planned(adjoint, attr, engine)
    plan = renamed(plan, desc)
    if is_open(desc.weights):
        return plan
    plan = copies.between_reorders(plan, {"weights": desc.weights}, engine.tuning, isa=engine.isa)
    return replace(plan, implementation=f"{name}:{f32_dot_level(engine.isa)}")
