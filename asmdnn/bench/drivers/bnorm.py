"""`--bnorm`: batch normalization."""

from typing import TYPE_CHECKING, Any

import asmdnn as dnn
from asmdnn.bench.channel_norms import ChannelNormWork, NormProblem, parse
from asmdnn.bench.dims import completed, desc_of
from asmdnn.bench.driver import Case, Driver
from asmdnn.bench.norm_gradients import NormGradientWork
from asmdnn.bench.norms import GRADIENTS, NormSettings, norm_options
from asmdnn.bench.tensor_work import PROP_KINDS, TensorWork
from asmdnn.bench.words import LAYOUT
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.primitives.normalization.channel_description import Fusion

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

BnormCase = Case[NormSettings, NormProblem]
FUSED: dict[str, Fusion] = {"R": "norm_relu", "A": "norm_add_relu"}


class BnormWork(ChannelNormWork):
    function = "batch_normalization_forward"

    def __init__(self, case: BnormCase) -> None:
        super().__init__(case)
        settings, fused = self.settings, [FUSED[flag] for flag in self.settings.flags if flag in FUSED]
        if len(fused) > 1:
            raise InvalidArguments("flags R and A: A alone adds a tensor and has relu after it")
        self.has_relu = bool(fused)
        self.descs = {**self.descs, **({"src_1": self.tensor} if "A" in settings.flags else {})}
        self.internal = ("workspace",) * (self.has_relu and self.is_training)
        mask = dnn.MemoryDesc(self.tensor.dims, dnn.u8, "any") if self.internal else None
        self.desc = dnn.BatchNormForward(
            PROP_KINDS[settings.dir], self.tensor, self.tensor, self.problem.epsilon, **self.optional,
            use_global_stats=self.given, fuse=fused[0] if fused else "none", workspace=mask,
        )  # fmt: skip

    def peer_arguments(self, peer: "OnednnPrimitive") -> tuple[Any, ...]:
        if self.settings.post_ops:
            raise Unimplemented("onednn: batch normalization has no post-ops")
        return self.peer_direction, *self.peer_descs(peer), self.problem.epsilon, self.peer_flags


class BnormGradientWork(NormGradientWork):
    primitive = "batch_normalization"

    def __init__(self, case: BnormCase) -> None:
        self.settings, p = case.settings, case.problem
        settings, self.epsilon = self.settings, p.epsilon
        if fused := {*settings.flags} & {*FUSED}:
            raise Unimplemented(f"--dir={settings.dir} with flag {fused.pop()} is not built")
        tensor, vector = desc_of(p.dims, settings.dt, settings.tag), desc_of(p.dims[1:2], "f32", "abx")
        self.axes = self.summed = (0, *range(2, len(p.dims)))
        self.take(tensor, tensor, vector, vector)
        how: dict[str, Any] = {**self.optional, "use_global_stats": self.given}
        self.desc = dnn.BatchNormBackward(tensor, tensor, tensor, epsilon=p.epsilon, **how)

    def asked_for(self, parameters: list[str]) -> list[str]:
        return [f"diff_{name}" for name in parameters]

    def forward_arguments(self, peer: "OnednnPrimitive", src: Any, dst: Any) -> tuple[Any, ...]:
        return src, dst, *self.peer_numbers

    def peer_arguments(self, peer: "OnednnPrimitive") -> tuple[Any, ...]:
        return *self.peer_descs(peer), *self.peer_numbers


def _work(case: BnormCase) -> TensorWork:
    return BnormGradientWork(case) if case.settings.dir in GRADIENTS else BnormWork(case)


def _title(case: BnormCase) -> str:
    settings = case.settings
    return f"{settings.dir} {settings.flags} {settings.tag} {'x'.join(map(str, case.problem.dims))}"


DRIVER = Driver(
    "bnorm",
    NormSettings(),
    norm_options({"tag": LAYOUT}, "GCHRA", "G statistics given, C scale, H shift, R relu, A add and relu",
                 "relu, linear:2:1, add:f32:per_oc, sum:0.5"),
    parse,
    _work,
    example="--mode=CP --dir=FWD_I --flags=GCH --tag=axb --threads=1 --peer=onednn mb1ic64ih56",
    notation="mb2ic64ih56iw56eps1e-4",
    title=_title,
    completed=completed,
)  # fmt: skip
