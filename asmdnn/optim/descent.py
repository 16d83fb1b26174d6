"""Stochastic gradient descent."""

from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.exact import exact
from asmdnn.optim.checks import number
from asmdnn.optim.optimizer import Groups, Optimizer, Rate, Updating
from asmdnn.records import dataclass, field


@exact
@dataclass(frozen=True, eq=False)
class SGD(Optimizer):
    """w - lr m, where m = momentum m + g; with nesterov, g + momentum m in the place of m (Sutskever et al., 2013, in
    the form that torch has).  weight_decay times w is added to the gradient first.  Raises InvalidArguments."""

    lr: Rate
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    groups: Groups = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "momentum", number("momentum", self.momentum, below=1))
        object.__setattr__(self, "weight_decay", number("weight_decay", self.weight_decay))
        if type(self.nesterov) is not bool:
            raise InvalidArguments(f"nesterov must be True or False, not {shown(self.nesterov)}")
        if self.nesterov and not self.momentum:
            raise InvalidArguments("nesterov needs a momentum: SGD(lr, momentum=0.9, nesterov=True)")
        self.check_rate_and_groups()

    def moved(self, p: Updating) -> Any:
        (lr,) = p.numbers
        direction = decayed(p, self.weight_decay)
        if self.momentum:
            kept = p.state("momentum")
            moment = p.update(kept, p.map(lambda m, g: self.momentum * m + g, kept, direction))
            if self.nesterov:
                return p.map(lambda w, g, m, lr: w - lr * (g + self.momentum * m), p.value, direction, moment, lr)
            direction = moment
        return p.map(lambda w, d, lr: w - lr * d, p.value, direction, lr)


def decayed(p: Updating, weight_decay: float) -> Any:
    """The gradient of the loss and of weight_decay / 2 times the square of the parameter."""
    return p.map(lambda g, w: g + weight_decay * w, p.gradient, p.value) if weight_decay else p.gradient
