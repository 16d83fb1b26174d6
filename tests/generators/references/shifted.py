"""What kernels compute whose frame begins further on: the same as where it does not."""

from dataclasses import replace
from typing import Any

import numpy as np

from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.generators.functions.shifted import ShiftedSpec
from asmdnn.generators.functions.softmax import SoftmaxSpec
from tests.generators.case import Case, Reference
from tests.generators.references.conv import conv_case
from tests.generators.references.grouped import grouped_case
from tests.generators.references.softmax import softmax_case

CASES = {SoftmaxSpec: softmax_case, GroupedRowsSpec: grouped_case, ConvTileSpec: conv_case}


def shifted_case(spec: ShiftedSpec, random: np.random.Generator, integers: bool) -> Case:
    """Those of the kernel; nothing else is touched."""
    make: Any = CASES[type(spec.kernel)]
    found = make(spec.kernel, random, integers)
    others = dict.fromkeys(spec.frame[: spec.first])
    return replace(found, spec=spec, buffers={**others, **found.buffers})


REFERENCES = {ShiftedSpec: Reference(shifted_case, rounds=True)}
