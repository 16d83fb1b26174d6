"""A convolution to test, in words: benchdnn's problem string, layouts, post-ops, and the layout of the weights.

A layout is a tag, or a tag with "~3" (3 elements of nothing after every row, image, ...) or "+5" (offset0).
A post-op is relu, relu:0.25, sum or sum:0.5.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.problems import ConvProblem, parse_problem
from asmdnn.generators.dot.few_outputs_shape import MOST_OUTPUTS
from asmdnn.memory.tags import parse_tag
from asmdnn.primitives.convolution.taps import TAP_CHANNELS

PROBLEMS = Path(__file__).with_name("conv_problems.txt")


@dataclass(frozen=True, slots=True)
class ConvCase:
    problem: ConvProblem
    src: str
    dst: str
    bias: bool
    post_ops: tuple[str, ...]
    l2_bytes: int = 0
    weights: str = "any"

    def __str__(self) -> str:
        words = [
            str(self.problem).strip('"'),
            self.src,
            self.dst,
            "bias" if self.bias else "-",
            "+".join(self.post_ops) or "-",
            self.weights,
        ]
        return " ".join(words + [f"l2={self.l2_bytes}"] * bool(self.l2_bytes))

    def desc(self) -> dnn.ConvolutionForward:
        p = self.problem
        return dnn.ConvolutionForward(
            src=layout(p.src_dims, self.src),
            weights=layout(p.weights_dims, self.weights),
            dst=layout(p.dst_dims, self.dst),
            bias=dnn.MemoryDesc((p.oc,), dnn.f32, "a") if self.bias else None,
            strides=p.strides,
            dilations=p.dilations,
            padding_l=p.padding_l,
            padding_r=p.padding_r,
        )

    def attr(self) -> dnn.Attr:
        return dnn.Attr([post_op(word) for word in self.post_ops])

    def implementation(self, isa: str) -> str:
        """Who must take it: a fallback that nobody meant is a failure."""
        lanes = {"avx2": 8, "avx512_core": 16}[isa]
        desc = self.desc()
        src_fits = self.problem.ic <= 16 or not channels_apart(desc.src)
        dst_fits = self.problem.oc == 1 or not channels_apart(desc.dst)
        dst_fits &= all(block % lanes == 0 for _, block in desc.dst.inner_blocks)
        packs = not (desc.weights.is_any or self.has_panels(lanes))
        dst_fits &= not self.has_panels(lanes) or all(block <= lanes for _, block in desc.dst.inner_blocks)
        words = ["pack"] * packs + ["reorder"] * (not (src_fits and dst_fits)) + ["direct"]
        planes = channels_apart(desc.src) and channels_apart(desc.dst)  # of so few elements that copies cost more
        product = self.is_product() and (packs or planes)
        return f"{'product' if product else '+'.join(words)}:{isa}"

    def has_panels(self, lanes: int) -> bool:
        """Whether weights lie in panels of one vector, which tiles read as they are, for dst in blocks of no more."""
        return self.desc().weights.inner_blocks == ((1, min(8, self.problem.ic)), (0, lanes))

    def is_product(self) -> bool:
        """Whether pixels of dst are those of src, and all tensors are matrices of pixels."""
        pointwise = all((axis.k, axis.s, axis.p, axis.i) == (1, 1, 0, axis.o) for axis in self.problem.axes)
        desc = self.desc()
        return pointwise and not desc.weights.inner_blocks and equally_apart(desc.src) and equally_apart(desc.dst)


def channels_apart(desc: dnn.MemoryDesc) -> bool:
    return not desc.is_any and not desc.inner_blocks and desc.strides[1] != 1


def equally_apart(desc: dnn.MemoryDesc) -> bool:
    """Whether all pixels of an image lie at one distance."""
    if desc.is_any or desc.inner_blocks:
        return desc.is_any
    return len(set(np.diff(desc.offsets()[0, 0].ravel()).tolist())) <= 1


def layout(dims: tuple[int, ...], word: str) -> dnn.MemoryDesc:
    """A tag; with "~3" gaps of 3 elements after every run, with "+5" an offset."""
    tag, _, offset0 = word.partition("+")
    tag, _, gap = tag.partition("~")
    if not gap:
        return dnn.MemoryDesc(dims, dnn.f32, tag, offset0=int(offset0 or 0))
    strides, step = [0] * len(dims), 1
    for dim in reversed(parse_tag(tag, len(dims)).order):
        strides[dim] = step
        step = step * dims[dim] + int(gap)
    return dnn.MemoryDesc(dims, dnn.f32, strides=strides, offset0=int(offset0 or 0))


def post_op(word: str) -> dnn.Sum | dnn.Eltwise:
    name, _, number = word.partition(":")
    return dnn.Sum(float(number or 1)) if name == "sum" else dnn.Eltwise(name, float(number or 0))


def case_of(line: str) -> ConvCase:
    problem, src, dst, bias, post_ops, *weights = line.split()
    chain = () if post_ops == "-" else tuple(post_ops.split("+"))
    return ConvCase(parse_problem(problem), src, dst, bias == "bias", chain, 0, *weights)


def cases_of_file() -> list[ConvCase]:
    lines = (line.split("#")[0].strip() for line in PROBLEMS.read_text().splitlines())
    return [case_of(line) for line in lines if line]


MACHINE = "zen3"  # plans are the same wherever the tests run
ENGINE: dict[str, Any] = {"threads": 2, "l2_bytes": 512 << 10, "machine": MACHINE}


def planned_as(implementation: str, case: ConvCase, isa: str) -> dnn.PrimitiveDesc:
    """By the implementation of that name, without a level, and checked."""
    pd = dnn.primitive_desc(case.desc(), case.attr(), dnn.Engine("cpu", isa=isa, **ENGINE))
    assert pd.implementation == f"{implementation}:{isa}"
    pd.plan.check()
    return pd


@cache
def proven(case: ConvCase, isa: str, threads: int = 1) -> dnn.PrimitiveDesc:
    """The plan of a case, which is the right implementation's and has passed its proof."""
    engine = dnn.Engine("cpu", isa=isa, threads=threads, l2_bytes=case.l2_bytes, machine=MACHINE)
    pd = dnn.primitive_desc(case.desc(), case.attr(), engine)
    if case.implementation(isa) == f"product:{isa}":
        assert pd.implementation.startswith("product+")
    elif "few_inputs" in pd.implementation:
        assert case.problem.ic < TAP_CHANNELS
    elif "few" in pd.implementation:
        assert case.problem.oc <= MOST_OUTPUTS
    else:
        assert pd.implementation == case.implementation(isa)
    pd.plan.check()
    return pd
