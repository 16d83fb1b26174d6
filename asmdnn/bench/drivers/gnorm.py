"""`--gnorm`: group normalization, and of as many groups as channels instance normalization."""

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
from asmdnn.bench.driver import Case, Driver

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
    options_of("GCHR", "G statistics are given, C scale, H shift, R relu behind"),
    parse,
    GnormWork,
    example="--mode=CP --dir=FWD_I --flags=CH --tag=axb --threads=1 g32mb1ic320ih32",
    notation="g32mb1ic320ih32",
    title=_title,
    completed=completed,
    peers=(),
)  # fmt: skip
