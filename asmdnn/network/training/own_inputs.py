"""What a step feeds itself: what changes from step to step, and what it draws by."""

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


class OwnInputs:
    """arrays: by name; they are written for each call, and lie where they are, so that calls need not place them.  For
    one step at a time.

    optimizers: whose numbers lie one after the other; seeds: inputs that dropout draws by, with the graph's seed;
    rounds: whether parameters are rounded at random.
    """

    def __init__(self, optimizers: Sequence[Optimizer], seeds: Sequence[str], graph_seed: int, rounds: bool) -> None:
        count = sum(len(optimizer.numbers(1)) for optimizer in optimizers)
        self._optimizers, self._seeds, self._graph_seed, self._rounds = optimizers, seeds, graph_seed, rounds
        self.arrays: dict[str, Array] = {NUMBERS: np.empty(count, np.float32)}
        self.arrays |= {name: np.empty(1, np.int32) for name in (*seeds, *[SEED] * rounds)}
        self._words: Any = self.arrays[NUMBERS].data  # whose stores take a tenth of numpy's time

    def draw(self, call: int) -> None:
        """What dropout draws by: other numbers for each call and each place."""
        for i, name in enumerate(self._seeds):
            self.arrays[name][0] = mixed(self._graph_seed, call, i)

    def move(self, step: int) -> None:
        """What updates read, computed in double precision and rounded once.  Raises InvalidArguments for what f32 does
        not hold, and for more or fewer numbers than those of the first step."""
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
        if self._rounds:
            self.arrays[SEED][0] = mixed(self._graph_seed, step, -1)
