"""`--gnorm`: group normalization, and of as many groups as channels instance normalization."""

from typing import Any

import asmdnn as dnn
from asmdnn.bench.channel_norms import ChannelNormWork, NormProblem, parse
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Driver, by_direction
from asmdnn.bench.norm_gradients import NormGradientWork
from asmdnn.bench.norms import NormSettings, norm_options
from asmdnn.bench.tensor_work import PROP_KINDS
from asmdnn.bench.words import LAYOUT
from asmdnn.definitions.normalization import by_groups
from asmdnn.errors import Unimplemented

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


class GnormGradientWork(NormGradientWork):
    axes, summed = (2, 3), (0, 3)  # of images, groups, their channels, and pixels

    def __init__(self, case: GnormCase) -> None:
        self.settings, p = case.settings, case.problem
        settings, self.epsilon, self.groups = self.settings, p.epsilon, p.groups
        if "R" in settings.flags:
            raise Unimplemented(f"--dir={settings.dir} with flag R is not built")
        tensor, vector = desc_of(p.dims, settings.dt, settings.tag), desc_of(p.dims[1:2], "f32", "abx")
        self.take(tensor, tensor, desc_of((p.dims[0], p.groups), "f32", "abx"), vector)
        how: dict[str, Any] = {**self.optional, "epsilon": p.epsilon, "use_global_stats": self.given}
        self.desc = dnn.GroupNormBackward(tensor, tensor, tensor, p.groups, **how)

    def shaped(self, x: Array) -> Array:
        return by_groups(x, self.groups)


DRIVER = Driver(
    "gnorm",
    NormSettings(),
    norm_options({"tag": LAYOUT}, "GCHR", "G statistics are given, C scale, H shift, R relu after",
                 "relu, linear:2:1, add:f32:per_oc, sum:0.5"),
    parse,
    by_direction(GnormWork, GnormGradientWork),
    example="--mode=CP --dir=FWD_I --flags=CH --tag=axb --threads=1 g32mb1ic320ih32",
    title=lambda case: f"{case.settings.dir} {case.settings.flags} {case.settings.tag} {case.problem}",
    peers=(),
)  # fmt: skip
