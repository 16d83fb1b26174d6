"""The networks of a training step, of which most steps need one."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from asmdnn.network.states import StateArrays
from asmdnn.network.training.counts import check_no_counts
from asmdnn.network.training.memory import FittedNetwork, fitted
from asmdnn.network.training.recipe import LOSS, StepRecipe


class StepNetworks:
    """Planned when they are needed first.  None of them keeps state: a step passes its own."""

    def __init__(self, recipe: StepRecipe) -> None:
        self.recipe = recipe

    @cached_property
    def fitted(self) -> FittedNetwork:
        """What a call runs, the whole step, or what adds its gradients to sums, in the memory that it may have."""
        recipe, options = self.recipe, self.recipe.options
        net = recipe.gathering() if options.accumulate > 1 else recipe.whole()
        return fitted(net, LOSS, options.memory_limit, options.checkpoints)

    @property
    def main(self) -> Any:
        """The network of that."""
        return self.fitted.net

    @cached_property
    def update(self) -> Any:
        """Of a step that accumulates: what moves parameters by the sums."""
        return self.recipe.updating(sums=True)

    @cached_property
    def forward(self) -> Any:
        """The first half of a step, gradients as results, of which only checkpoints are kept where there are some."""
        recipe = self.recipe
        return fitted(recipe.forward(), LOSS, None, recipe.options.checkpoints).net

    @cached_property
    def halves(self) -> Any:
        """The second half, gradients as inputs."""
        return self.recipe.updating(sums=False)

    def made(self) -> Iterator[Any]:
        """Those that a step of this kind needs, and those that have been needed."""
        yield self.main
        if self.recipe.options.accumulate > 1:
            yield self.update
        for name in ("forward", "halves"):
            if name in self.__dict__:
                yield self.__dict__[name]

    def states(self) -> StateArrays:
        """New arrays for all that stays between steps."""
        several = [self.main.state, self.update.state] if self.recipe.options.accumulate > 1 else [self.main.state]
        found = {state.name: (state, net[state.name].shape) for net in reversed(several) for state in net.states}
        check_no_counts(found)
        return StateArrays([state for state, _ in found.values()], {name: dims for name, (_, dims) in found.items()})
