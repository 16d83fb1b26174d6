"""`--bnorm`: batch normalization."""

from typing import TYPE_CHECKING, Any

import asmdnn as dnn
from asmdnn.bench.channel_norms import (
    PROP_KINDS,
    ChannelNormSettings,
    ChannelNormWork,
    NormProblem,
    completed,
    options_of,
    parse,
)
from asmdnn.bench.driver import AnyCase, Case, Driver, PeerSide
from asmdnn.bench.norms import FLAG_BITS
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.primitives.normalization.channel_description import Fusion

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

# Numbers of oneDNN's C interface.
FORWARD = {"FWD_D": 64, "FWD_I": 96}
ARGUMENTS = {"src": 1, "dst": 17, "mean": 49, "variance": 50, "scale": 51, "shift": 52, "src_1": 2}
WORKSPACE = 64
BnormCase = Case[ChannelNormSettings, NormProblem]


class BnormWork(ChannelNormWork):
    def __init__(self, case: AnyCase) -> None:
        super().__init__(case)
        if {"R", "A"} <= set(self.settings.flags):
            raise InvalidArguments("flags R and A: A alone adds a tensor and has relu behind it")
        self.fuse: Fusion = "norm_add_relu" if "A" in self.settings.flags else "norm_relu" if self.has_relu else "none"
        self.internal = ("workspace",) * (self.has_relu and self.is_training)

    def describe(self) -> tuple[dnn.BatchNormForward, dnn.Attr]:
        kind, epsilon = PROP_KINDS[self.settings.dir], self.problem.epsilon
        mask = dnn.MemoryDesc(self.dims, dnn.u8, "any") if self.internal else None
        desc = dnn.BatchNormForward(
            kind,
            self.tensor,
            self.tensor,
            epsilon,
            **self.optional,
            use_global_stats=self.given,
            fuse=self.fuse,
            workspace=mask,
        )
        return desc, self.attr

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor

        if self.settings.post_ops:
            raise Unimplemented("onednn: batch normalization has no post-ops")
        tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in self.descs.items()}
        internal = Storage({"workspace": WORKSPACE} if self.internal else {})
        sides = (self.results, self.in_place, internal)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, *sides)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        bits = sum(FLAG_BITS[flag] for flag in self.settings.flags)
        return peer.describe(
            peer.lib.dnnl_batch_normalization_forward_primitive_desc_create,
            *(
                FORWARD[self.settings.dir],
                peer.descs["src"],
                peer.descs["dst"],
                self.problem.epsilon,
                bits,
                peer.null,
            ),
        )


def _title(case: BnormCase) -> str:
    settings = case.settings
    return f"{settings.dir} {settings.flags} {settings.tag} {'x'.join(map(str, case.problem.dims))}"


DRIVER = Driver(
    "bnorm",
    ChannelNormSettings(),
    options_of("GCHRA", "G statistics given, C scale, H shift, R relu, A add and relu"),
    parse,
    BnormWork,
    example="--mode=CP --dir=FWD_I --flags=GCH --tag=axb --threads=1 --peer=onednn mb1ic64ih56",
    notation="mb2ic64ih56iw56eps1e-4",
    title=_title,
    completed=completed,
)  # fmt: skip
