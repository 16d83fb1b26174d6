"""Optimizers that divide by the size of past gradients, or take their signs."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from asmdnn.exact import exact
from asmdnn.optim.checks import number
from asmdnn.optim.descent import decayed
from asmdnn.optim.optimizer import Groups, Optimizer, Rate, Updating, check_betas


class AdamMoments(Optimizer):
    """What Adam and AdamW have in common: the means of gradients and of their squares, corrected for their zeros."""

    betas: tuple[float, float]
    eps: float
    weight_decay: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", check_betas(self.betas))
        object.__setattr__(self, "eps", number("eps", self.eps))
        object.__setattr__(self, "weight_decay", number("weight_decay", self.weight_decay))
        self.check_rate_and_groups()

    def numbers(self, step: int) -> tuple[float, ...]:
        """The rate over the correction of the mean; one over the root of that of the squares; lr weight_decay."""
        lr, (mean, square) = self.rate(step), self.betas
        return lr / (1 - mean**step), 1 / sqrt(1 - square**step), lr * self.weight_decay

    def move(self, p: Updating, gradient: Any) -> Any:
        """What is subtracted."""
        rate, correction, _ = p.numbers
        mean, square = p.state("mean"), p.state("square")
        mean = p.update(mean, self.betas[0] * mean + (1 - self.betas[0]) * gradient)
        square = p.update(square, self.betas[1] * square + (1 - self.betas[1]) * (gradient * gradient))
        return rate * mean / (p.apply("Sqrt", square) * correction + self.eps)


@exact
@dataclass(frozen=True, eq=False)
class Adam(AdamMoments):
    """w - lr m' / (sqrt(v') + eps), with m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g g, m' = m / (1 - b1**step),
    v' = v / (1 - b2**step) (Kingma and Ba, 2015).  weight_decay times w is added to g.  Raises InvalidArguments."""

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    groups: Groups = field(default_factory=dict, compare=False)

    def moved(self, p: Updating) -> Any:
        return p.value - self.move(p, decayed(p, self.weight_decay))


@exact
@dataclass(frozen=True, eq=False)
class AdamW(AdamMoments):
    """Adam, with lr weight_decay w subtracted beside (Loshchilov and Hutter, 2019).  Raises InvalidArguments."""

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    groups: Groups = field(default_factory=dict, compare=False)

    def moved(self, p: Updating) -> Any:
        move = self.move(p, p.gradient)
        return p.value - (move + p.numbers[2] * p.value if self.weight_decay else move)


@exact
@dataclass(frozen=True, eq=False)
class RMSprop(Optimizer):
    """w - lr d, with d = momentum d + g / (sqrt(v) + eps), v = alpha v + (1 - alpha) g g (Tieleman and Hinton, 2012).
    weight_decay times w is added to g.  Raises InvalidArguments."""

    lr: Rate = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    momentum: float = 0.0
    weight_decay: float = 0.0
    groups: Groups = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number("alpha", self.alpha, below=1))
        object.__setattr__(self, "eps", number("eps", self.eps))
        object.__setattr__(self, "momentum", number("momentum", self.momentum, below=1))
        object.__setattr__(self, "weight_decay", number("weight_decay", self.weight_decay))
        self.check_rate_and_groups()

    def moved(self, p: Updating) -> Any:
        gradient, square = decayed(p, self.weight_decay), p.state("square")
        square = p.update(square, self.alpha * square + (1 - self.alpha) * (gradient * gradient))
        direction = gradient / (p.apply("Sqrt", square) + self.eps)
        if self.momentum:
            moment = p.state("momentum")
            direction = p.update(moment, self.momentum * moment + direction)
        return p.value - p.numbers[0] * direction


@exact
@dataclass(frozen=True, eq=False)
class Lion(Optimizer):
    """w - lr (sign(b1 m + (1 - b1) g) + weight_decay w), then m = b2 m + (1 - b2) g (Chen et al., 2023).  Raises
    InvalidArguments."""

    lr: Rate = 1e-4
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0
    groups: Groups = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", check_betas(self.betas))
        object.__setattr__(self, "weight_decay", number("weight_decay", self.weight_decay))
        self.check_rate_and_groups()

    def numbers(self, step: int) -> tuple[float, ...]:
        lr = self.rate(step)
        return lr, lr * self.weight_decay

    def moved(self, p: Updating) -> Any:
        (first, second), mean = self.betas, p.state("mean")
        move = p.numbers[0] * p.apply("Sign", first * mean + (1 - first) * p.gradient)
        p.update(mean, second * mean + (1 - second) * p.gradient)
        return p.value - (move + p.numbers[1] * p.value if self.weight_decay else move)
