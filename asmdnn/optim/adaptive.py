"""Optimizers that divide by the size of past gradients, or take their signs."""

from math import sqrt
from typing import Any

from asmdnn.exact import exact
from asmdnn.optim.checks import number
from asmdnn.optim.descent import decayed
from asmdnn.optim.optimizer import Groups, Optimizer, Rate, Updating, check_betas
from asmdnn.records import dataclass, field


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

    def move(self, p: Updating, gradient: Any, value: Any) -> Any:
        """The value less what the step takes of it."""
        (first, second), (rate, correction, decay) = self.betas, p.numbers
        mean, square = p.state("mean"), p.state("square")
        mean = p.update(mean, p.map(lambda m, g: first * m + (1 - first) * g, mean, gradient))
        square = p.update(square, p.map(lambda v, g: second * v + (1 - second) * (g * g), square, gradient))
        root, operands = p.apply("Sqrt", square), (mean, rate, correction)
        if self.decays_values:
            return p.map(
                lambda w, s, m, r, c, d: w - (r * m / (s * c + self.eps) + d * w), value, root, *operands, decay
            )
        return p.map(lambda w, s, m, r, c: w - r * m / (s * c + self.eps), value, root, *operands)

    @property
    def decays_values(self) -> bool:
        """Whether a share of the value is taken beside."""
        return False


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
        return self.move(p, decayed(p, self.weight_decay), p.value)


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
        return self.move(p, p.gradient, p.value)

    @property
    def decays_values(self) -> bool:
        return bool(self.weight_decay)


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
        square = p.update(square, p.map(lambda v, g: self.alpha * v + (1 - self.alpha) * (g * g), square, gradient))
        root = p.apply("Sqrt", square)
        if not self.momentum:
            return p.map(lambda w, s, g, lr: w - lr * (g / (s + self.eps)), p.value, root, gradient, p.numbers[0])
        moment = p.state("momentum")
        moved = p.map(lambda m, s, g: self.momentum * m + g / (s + self.eps), moment, root, gradient)
        return p.map(lambda w, d, lr: w - lr * d, p.value, p.update(moment, moved), p.numbers[0])


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
        sign = p.apply("Sign", p.map(lambda m, g: first * m + (1 - first) * g, mean, p.gradient))
        p.update(mean, p.map(lambda m, g: second * m + (1 - second) * g, mean, p.gradient))
        if self.weight_decay:
            return p.map(lambda w, s, lr, decay: w - (lr * s + decay * w), p.value, sign, *p.numbers)
        return p.map(lambda w, s, lr: w - lr * s, p.value, sign, p.numbers[0])
