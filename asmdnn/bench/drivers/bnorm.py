"""`--bnorm`: batch normalization."""

from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.channel_norms import ChannelNormWork, NormProblem, parse
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Driver, TensorData, by_direction
from asmdnn.bench.norm_gradients import NormGradientWork
from asmdnn.bench.norms import NormSettings, norm_options
from asmdnn.bench.tensor_work import PROP_KINDS
from asmdnn.bench.titles import titled
from asmdnn.bench.words import LAYOUT
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.normalization.channel_description import Fusion

BnormCase = Case[NormSettings, NormProblem]
FUSED: dict[str, Fusion] = {"R": "norm_relu", "A": "norm_add_relu"}


def fusion_of(flags: str) -> Fusion:
    fused = [FUSED[flag] for flag in flags if flag in FUSED]
    if len(fused) > 1:
        raise InvalidArguments("flags R and A: A alone adds a tensor and has relu after it")
    return fused[0] if fused else "none"


class BnormWork(ChannelNormWork):
    function = "batch_normalization_forward"

    def __init__(self, case: BnormCase) -> None:
        super().__init__(case)
        settings, fused = self.settings, fusion_of(self.settings.flags)
        self.has_relu = fused != "none"
        self.lacks = "onednn: batch normalization has no post-ops" if settings.post_ops else ""
        self.pass_on(self.problem.epsilon)
        self.descs = {**self.descs, **({"src_1": self.tensor} if "A" in settings.flags else {})}
        self.internal = ("workspace",) * (self.has_relu and self.is_training)
        mask = dnn.MemoryDesc(self.tensor.dims, dnn.u8, "any") if self.internal else None
        self.desc = dnn.BatchNormForward(
            PROP_KINDS[settings.dir], self.tensor, self.tensor, self.problem.epsilon, **self.optional,
            use_global_stats=self.given, fuse=fused, workspace=mask,
        )  # fmt: skip


class BnormGradientWork(NormGradientWork):
    primitive = "batch_normalization"

    def __init__(self, case: BnormCase) -> None:
        self.settings, p = case.settings, case.problem
        settings, self.epsilon = self.settings, p.epsilon
        fused = fusion_of(settings.flags)
        tensor, vector = desc_of(p.dims, settings.dt, settings.tag), desc_of(p.dims[1:2], "f32", "abx")
        self.axes = self.summed = (0, *range(2, len(p.dims)))
        self.take(tensor, tensor, vector, vector)
        self.pass_on()
        if fused != "none":
            mask = dnn.MemoryDesc(tensor.dims, dnn.u8, strides=tensor.strides, inner_blocks=tensor.inner_blocks)
            added = {"diff_src_1": tensor} if fused == "norm_add_relu" else {}
            self.descs = {**self.descs, "workspace": mask, **added}
            self.results = ("diff_src", *added, *self.results[1:])
            self.lacks = "onednn: the mask of a fused relu, which only its own forward pass can leave"
        how: dict[str, Any] = {**self.optional, "use_global_stats": self.given, "fuse": fused}
        self.desc = dnn.BatchNormBackward(tensor, tensor, tensor, epsilon=p.epsilon, **how)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        """Of a mask 0 and 1."""
        arrays = super().sources(random, exact)
        if "workspace" in self.descs:
            arrays["workspace"] = random.integers(0, 2, self.descs["workspace"].dims, np.uint8)
        return arrays

    def passed(self, data: TensorData) -> Array:
        """diff_dst where the mask is 1."""
        found = super().passed(data)
        return found * data.arrays["workspace"] if "workspace" in self.descs else found

    def asked_for(self, parameters: list[str]) -> list[str]:
        return [f"diff_{name}" for name in parameters]


DRIVER = Driver(
    "bnorm",
    NormSettings(),
    norm_options({"tag": LAYOUT}, "GCHRA", "G statistics given, C scale, H shift, R relu, A add and relu",
                 "relu, linear:2:1, add:f32:per_oc, sum:0.5"),
    parse,
    by_direction(BnormWork, BnormGradientWork),
    example="--mode=CP --dir=FWD_I --flags=GCH --tag=axb --threads=1 --peer=onednn mb1ic64ih56",
    notation="mb2ic64ih56iw56eps1e-4",
    title=titled("{dir} {flags} {tag} {dims}"),
)  # fmt: skip
