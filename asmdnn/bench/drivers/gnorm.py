"""`--gnorm`: group normalization, and of as many groups as channels instance normalization."""

import asmdnn as dnn
from asmdnn.bench.attributes import options
from asmdnn.bench.channel_norms import PROP_KINDS, ChannelNormSettings, ChannelNormWork, NormProblem, parse
from asmdnn.bench.driver import Case, Driver
from asmdnn.bench.drivers.bnorm import completed
from asmdnn.bench.norms import flags
from asmdnn.bench.words import Option, boolean, data_type, direction, number, tag

GnormCase = Case[ChannelNormSettings, NormProblem]


class GnormWork(ChannelNormWork):
    is_batch = False

    def describe(self) -> tuple[dnn.GroupNormForward, dnn.Attr]:
        kind, problem = PROP_KINDS[self.settings.dir], self.problem
        desc = dnn.GroupNormForward(
            kind,
            self.tensor,
            self.tensor,
            problem.groups,
            problem.epsilon,
            **self.optional,
            use_global_stats=self.given,
        )
        return desc, self.attr


def _title(case: GnormCase) -> str:
    settings, problem = case.settings, case.problem
    return f"{settings.dir} {settings.flags} {settings.tag} {problem}"


DRIVER = Driver(
    "gnorm",
    ChannelNormSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS), "FWD_D training (default), FWD_I inference", True),
        "dt": Option("dt", data_type("f32"), "data type: f32", True),
        "tag": Option("tag", tag, "layout: abx (default), axb, aBx16b, nchw, nChw8c, ...", True),
        "flags": Option("flags", flags("GCHR"), "G statistics are given, C scale, H shift, R relu behind", True),
        **options("relu, linear:2:1, add:f32:per_oc, sum:0.5"),
        "inplace": Option("inplace", boolean, "true: the result replaces src; false (default)", True),
        "mb": Option("mb", number(0), "the first dim, instead of each problem's own (0, the default)", True),
    },
    parse,
    GnormWork,
    example="--mode=CP --dir=FWD_I --flags=CH --tag=axb --threads=1 g32mb1ic320ih32",
    notation="g32mb1ic320ih32",
    title=_title,
    completed=completed,
    peers=(),
)  # fmt: skip
