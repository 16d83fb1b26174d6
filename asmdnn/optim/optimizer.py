"""What all optimizers are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fnmatch import fnmatchcase
from typing import Any, Protocol

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.optim.checks import number
from asmdnn.records import replace

Rate = float | Callable[[int], float]
Groups = Mapping[str, Mapping[str, Any] | None]


class Updating(Protocol):
    """One parameter in a training step, as its rule sees it: values are symbols of the step's graph.

    value: what it is before the step; gradient: of the loss by it; numbers: what `Optimizer.numbers` returned.
    """

    @property
    def value(self) -> Any: ...
    @property
    def gradient(self) -> Any: ...
    @property
    def numbers(self) -> Sequence[Any]: ...

    def state(self, name: str) -> Any:
        """A value of the parameter's dims that stays between steps, and is zeros at first."""

    def update(self, state: Any, value: Any) -> Any:
        """What a state becomes, which may be read."""

    def apply(self, op: str, *operands: Any) -> Any:
        """An operator of ONNX with one result."""

    def map(self, function: Callable[..., Any], *operands: Any) -> Any:
        """A function of elements, as `Graph.map` takes it, which becomes one pass over the operands."""


class Optimizer:
    """A rule for parameters.  For one of your own, make a frozen dataclass with the fields lr and groups, whose
    `numbers` and `moved` say what the step is.

    lr: the learning rate, or a function of the number of the step, as those of this module; groups: options for
    parameters whose names match a pattern (fnmatch), the first that does; None leaves them as they are.
    """

    lr: Rate
    groups: Groups

    def numbers(self, step: int) -> tuple[float, ...]:
        """What depends on the number of the step, of which the first is 1."""
        return (self.rate(step),)

    def moved(self, p: Updating) -> Any:
        """What a parameter becomes."""
        raise NotImplementedError

    def rate(self, step: int) -> float:
        """The learning rate of a step.  Raises InvalidArguments for one that is no finite number from 0 on."""
        return number(f"lr of step {step}", self.lr(step)) if callable(self.lr) else self.lr

    def settings(self, names: Sequence[str]) -> dict[str, "Optimizer"]:
        """The optimizer of each parameter that is trained.  Raises InvalidArguments for patterns that match none."""
        for pattern in self.groups:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise InvalidArguments(f"groups names {shown(pattern)}, which no parameter matches: {', '.join(names)}")
        found: dict[str, Optimizer] = {}
        for name in names:
            options = next((self.groups[x] for x in self.groups if fnmatchcase(name, x)), {})
            if options is not None:
                found[name] = with_options(self, options)
        return found

    def check_rate_and_groups(self) -> None:
        """Raise InvalidArguments for what is neither a rate nor groups."""
        if not callable(self.lr):
            object.__setattr__(self, "lr", number("lr", self.lr))
        if not isinstance(self.groups, Mapping):
            raise InvalidArguments(f"groups must map patterns of names to options or None, not {shown(self.groups)}")
        object.__setattr__(self, "groups", dict(self.groups))
        for pattern, options in self.groups.items():
            if not isinstance(pattern, str) or not (options is None or isinstance(options, Mapping)):
                raise InvalidArguments(
                    f"groups must map patterns of names to options or None, not {shown(pattern)} to {shown(options)}"
                )
            if options is not None:
                with_options(self, options)


def with_options(optimizer: Optimizer, options: Mapping[str, Any]) -> Optimizer:
    """The optimizer with the options of a group.  Raises InvalidArguments."""
    known = [field.name for field in fields(optimizer) if field.name != "groups"]  # type: ignore[arg-type]
    for name in options:
        if name not in known:
            near = did_you_mean(name, known) if isinstance(name, str) else f"these are {', '.join(known)}"
            raise InvalidArguments(f"groups has the option {shown(name)}, which is none of the optimizer: {near}")
    return replace(optimizer, **{**options, "groups": {}})  # type: ignore[type-var]


def check_betas(betas: Any) -> tuple[float, float]:
    """Raises InvalidArguments unless these are two numbers from 0 on and less than 1."""
    if not isinstance(betas, tuple) or len(betas) != 2:
        raise InvalidArguments(f"betas must be a tuple of two numbers, such as (0.9, 0.999), not {shown(betas)}")
    return number("betas", betas[0], below=1), number("betas", betas[1], below=1)
