"""This library's convolution as a call to measure and compare: descriptor, plan, bound primitive and its memory."""

from dataclasses import dataclass

import numpy as np

import asmdnn as dnn
from asmdnn.cli.options import Case
from asmdnn.cli.problems import ConvProblem
from asmdnn.cli.reference import ConvData, Floats


@dataclass(frozen=True, slots=True)
class Layouts:
    """The memory descriptors of a case, as asked for: `any` is still any."""

    src: dnn.MemoryDesc
    weights: dnn.MemoryDesc
    bias: dnn.MemoryDesc | None
    dst: dnn.MemoryDesc

    @property
    def tags(self) -> tuple[str, str, str]:
        """In letters, whatever alias the option had."""
        src, weights, dst = (desc.tag or "strides" for desc in (self.src, self.weights, self.dst))
        return src, weights, dst


def unsupported(problem: ConvProblem) -> str:
    """Why no implementation can take `problem` whatever its sizes, or ""."""
    if problem.groups > 1:
        return f"{problem.groups} groups: grouped convolutions are not implemented yet"
    if len(problem.axes) != 2:
        return f"{len(problem.axes)}D: only 2D convolutions are implemented yet"
    return ""


def layouts(case: Case) -> Layouts:
    """Raises InvalidArguments for a tag that does not exist or does not fit."""
    problem, settings = case.problem, case.settings
    bias = dnn.MemoryDesc((problem.oc,), dnn.f32, "a") if settings.has_bias else None
    return Layouts(
        dnn.MemoryDesc(problem.src_dims, dnn.f32, settings.stag),
        dnn.MemoryDesc(problem.weights_dims, dnn.f32, settings.wtag),
        bias,
        dnn.MemoryDesc(problem.dst_dims, dnn.f32, settings.dtag),
    )


def descriptor(case: Case, wanted: Layouts, engine: dnn.Engine) -> dnn.PrimitiveDesc:
    """The plan of a case; generates and executes nothing.  Raises AsmdnnError."""
    problem = case.problem
    sides = (problem.strides, problem.dilations, problem.padding_l, problem.padding_r)
    strides, dilations, padding_l, padding_r = ((height, width) for height, width in sides)
    training = case.settings.dir != "FWD_I"
    desc = dnn.ConvolutionForward(
        src=wanted.src,
        weights=wanted.weights,
        bias=wanted.bias,
        dst=wanted.dst,
        strides=strides,
        dilations=dilations,
        padding_l=padding_l,
        padding_r=padding_r,
        prop_kind=dnn.PropKind.forward_training if training else dnn.PropKind.forward_inference,
    )
    attr = dnn.Attr([dnn.Sum() if op == "sum" else dnn.Eltwise(op) for op in case.settings.post_ops])
    return dnn.primitive_desc(desc, attr=attr, engine=engine)


class OwnConvolution:
    """As OnednnConvolution: `write` fills the arguments, `compute` does that and returns dst, `run()` is timed."""

    def __init__(self, case: Case, wanted: Layouts, engine: dnn.Engine) -> None:
        pd = descriptor(case, wanted, engine)
        self.implementation = pd.implementation
        self._memory = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
        self.run = dnn.Primitive(pd).bind(**self._memory)

    def write(self, data: ConvData) -> None:
        """Copy `data` into the arguments, each in the layout of the plan; by numpy, so that no reorder of the library
        can make up for an error of its convolution."""
        for name, memory in self._memory.items():
            memory.array[:] = dnn.Memory.from_numpy(getattr(data, name), memory.desc).array

    def compute(self, data: ConvData) -> Floats:
        """dst for `data`, in plain layout."""
        self.write(data)
        self.run()
        return np.asarray(self._memory["dst"].numpy(), np.float32)
