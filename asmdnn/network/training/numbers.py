"""What changes from step to step, as a step passes it: computed in double precision, rounded once."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from asmdnn.definitions.random_numbers import mixed
from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.arrays import Array
from asmdnn.network.training.rounding import SEED
from asmdnn.network.training.updates import NUMBERS
from asmdnn.optim.optimizer import Optimizer


class StepNumbers:
    """Arrays that are written again for each step, since new ones cost more than the numbers; for one step at a time.

    optimizers: whose numbers lie one after the other; seed: of the graph, if parameters are rounded at random."""

    def __init__(self, optimizers: Sequence[Optimizer], seed: int | None) -> None:
        count = sum(len(optimizer.numbers(1)) for optimizer in optimizers)
        self._optimizers, self._seed = optimizers, seed
        self._arrays: dict[str, Array] = {NUMBERS: np.empty(count, np.float32)}
        self._words: Any = self._arrays[NUMBERS].data  # whose stores take a tenth of numpy's time
        if seed is not None:
            self._arrays[SEED] = np.empty(1, np.int32)

    def of(self, step: int) -> dict[str, Array]:
        """The inputs by name, until the next call.  Raises InvalidArguments for what f32 does not hold, and for more or
        fewer numbers than those of the first step."""
        found, words = [number for optimizer in self._optimizers for number in optimizer.numbers(step)], self._words
        if len(found) != len(words):
            raise InvalidArguments(f"the optimizer has {len(found)} numbers in step {step}, and {len(words)} in step 1")
        try:
            for i, number in enumerate(found):
                words[i] = number
            are_finite = all(map(isfinite, words))
        except (TypeError, ValueError, OverflowError):
            are_finite = False
        if not are_finite:
            raise InvalidArguments(f"the optimizer's numbers of step {step} are {shown(found)}: make the rate smaller")
        if self._seed is not None:
            self._arrays[SEED][0] = mixed(self._seed, step, -1)
        return self._arrays
