"""A call of a kernel: its buffers, and what must come out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.phase import Int64
from tests.support.arena import Buffer, Bytes, Doubles

UNIT_ROUNDOFF = 2.0**-24
MOST_SLOPE = 512  # no chain of the corpus magnifies an error more: operands are up to 16, two factors in a row


@dataclass(frozen=True, eq=False)
class Case:
    """A call: a buffer for each word of the frame that it touches, None for the others; tolerances as in
    `Buffer.check`; the tap list in words, if there is one; partly: buffers of which data say what is touched, so that
    a footprint claims more."""

    spec: KernelSpec
    buffers: dict[str, Buffer | None]
    tolerances: dict[str, Doubles | float]
    taps: Int64 | None = None
    partly: tuple[str, ...] = ()

    def check(self, after: dict[str, Bytes]) -> None:
        for name, buffer in self.buffers.items():
            if buffer is not None:
                buffer.check(after[name], self.tolerances.get(name, 0.0), name)


@dataclass(frozen=True, slots=True)
class Reference:
    """make: the case of a spec, from a random generator, on integers or on real numbers.  rounds: the kernel computes,
    so that the two differ; else it is only asked for integers."""

    make: Callable[[Any, np.random.Generator, bool], Case]
    rounds: bool
