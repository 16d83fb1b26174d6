"""`--gnorm`: group normalization, and of as many groups as channels instance normalization."""

from typing import Any

import asmdnn as dnn
from asmdnn.bench.channel_norms import ChannelNormWork, NormProblem, parse
from asmdnn.bench.dims import completed
from asmdnn.bench.driver import Case, Driver
from asmdnn.bench.norms import NormSettings, norm_options
from asmdnn.bench.tensor_work import PROP_KINDS
from asmdnn.bench.words import LAYOUT

GnormCase = Case[NormSettings, NormProblem]


class GnormWork(ChannelNormWork):
    is_batch = False

    def __init__(self, case: GnormCase) -> None:
        super().__init__(case)
        settings, sizes = self.settings, (self.problem.groups, self.problem.epsilon)
        relu = [dnn.Eltwise("relu")] if "R" in settings.flags else []
        modes = {name: getattr(self.attr, name) for name in ("scratchpad_mode", "deterministic", "denormals")}
        self.attr = dnn.Attr([*relu, *self.attr.post_ops], **modes)
        how: dict[str, Any] = {**self.optional, "use_global_stats": self.given}
        self.desc = dnn.GroupNormForward(PROP_KINDS[settings.dir], self.tensor, self.tensor, *sizes, **how)


DRIVER = Driver(
    "gnorm",
    NormSettings(),
    norm_options({"tag": LAYOUT}, "GCHR", "G statistics are given, C scale, H shift, R relu after",
                 "relu, linear:2:1, add:f32:per_oc, sum:0.5", has_gradient=False),
    parse,
    GnormWork,
    example="--mode=CP --dir=FWD_I --flags=CH --tag=axb --threads=1 g32mb1ic320ih32",
    notation="g32mb1ic320ih32",
    title=lambda case: f"{case.settings.dir} {case.settings.flags} {case.settings.tag} {case.problem}",
    completed=completed,
    peers=(),
)  # fmt: skip
