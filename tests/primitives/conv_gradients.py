"""Gradients of convolutions and deconvolutions from their definition, in float64; and small problems of every kind."""

from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.deconv_problem import DeconvAxis, parse_deconv_problem
from asmdnn.bench.problems import ConvProblem, parse_problem
from tests.primitives.conv_case import layout

Doubles = np.ndarray[Any, np.dtype[np.float64]]


def problem_of(text: str) -> ConvProblem:
    """Of `deconv:mb1ic8...` or `mb1ic8...`."""
    name, _, rest = text.rpartition(":")
    return parse_deconv_problem(rest) if name else parse_problem(rest)


def is_deconvolution(problem: ConvProblem) -> bool:
    return isinstance(problem.axes[0], DeconvAxis)


def window_of(problem: ConvProblem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("strides", "dilations", "padding_l", "padding_r")}


def described(form: Any, problem: ConvProblem, tags: dict[str, str], **more: Any) -> Any:
    """A description of `form`, with tensors in these formats, `any` where none is said."""
    dims = {"src": problem.src_dims, "weights": problem.weights_dims, "bias": (problem.oc,), "dst": problem.dst_dims}
    roles = getattr(form, "roles", {"src": "src", "weights": "weights", "dst": "dst"})
    tensors = {name: layout(dims[role], tags.get(role, "any")) for role, name in roles.items() if role != "bias"}
    if "bias" in tags:
        tensors[roles["bias"]] = dnn.MemoryDesc(dims["bias"], dnn.f32, tags["bias"])
    return form(**tensors, **window_of(problem), **more)


def integers(seed: int, dims: tuple[int, ...], largest: int = 4) -> Any:
    return np.random.default_rng(seed).integers(-largest, largest, dims, endpoint=True).astype(np.float32)


def pairs(problem: ConvProblem) -> Any:
    """(tap, pixel of src, pixel of dst) of every product of the forward pass."""
    transposed = is_deconvolution(problem)
    for tap in np.ndindex(*(axis.k for axis in problem.axes)):
        for small in np.ndindex(*(axis.i if transposed else axis.o for axis in problem.axes)):
            large = tuple(i * a.s + t * (a.d + 1) - a.p for i, t, a in zip(small, tap, problem.axes, strict=True))
            if all(0 <= y < (a.o if transposed else a.i) for y, a in zip(large, problem.axes, strict=True)):
                yield (tap, small, large) if transposed else (tap, large, small)


def of_data(problem: ConvProblem, weights: Any, diff_dst: Any) -> Doubles:
    """diff_src, a product at a time."""
    p, g = problem, problem.groups
    w = np.asarray(weights, np.float64).reshape(g, p.oc // g, p.ic // g, *(axis.k for axis in p.axes))
    dy = np.asarray(diff_dst, np.float64).reshape(p.mb, g, p.oc // g, *p.dst_dims[2:])
    dx = np.zeros((p.mb, g, p.ic // g, *p.src_dims[2:]))
    for tap, src, dst in pairs(problem):
        dx[(..., *src)] += np.einsum("ngo,goi->ngi", dy[(..., *dst)], w[(..., *tap)])
    return dx.reshape(p.src_dims)


def of_weights(problem: ConvProblem, src: Any, diff_dst: Any) -> Doubles:
    """diff_weights, a product at a time."""
    p, g = problem, problem.groups
    x = np.asarray(src, np.float64).reshape(p.mb, g, p.ic // g, *p.src_dims[2:])
    dy = np.asarray(diff_dst, np.float64).reshape(p.mb, g, p.oc // g, *p.dst_dims[2:])
    dw = np.zeros((g, p.oc // g, p.ic // g, *(axis.k for axis in p.axes)))
    for tap, here, there in pairs(problem):
        dw[(..., *tap)] += np.einsum("ngo,ngi->goi", dy[(..., *there)], x[(..., *here)])
    return dw.reshape(p.weights_dims)
