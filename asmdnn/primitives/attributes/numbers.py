"""Checks of the words and numbers that post-ops and descriptions take."""

from collections.abc import Collection, Container
from numbers import Real

from asmdnn.errors import InvalidArguments, not_one_of, resembling, shown
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.memory import MemoryDesc
from asmdnn.types import DataType, PropKind, f32

FORWARD = (PropKind.forward_training, PropKind.forward_inference)
# oneDNN's names before its version 2.7, of functions that have others since.
OLDER_ALGORITHMS = {"bounded_relu": "clip", "gelu": "gelu_tanh"}
FLOAT32_MAX = float.fromhex("0x1.fffffep127")


def finite(name: str, value: float) -> float:
    """`value` as a float that f32 can hold, or InvalidArguments naming the field."""
    if isinstance(value, bool) or not isinstance(value, Real) or not -FLOAT32_MAX <= value <= FLOAT32_MAX:
        raise InvalidArguments(f"{name} must be a finite f32 number, not {shown(value)}")
    return float(value)


def check_flag(name: str, value: object) -> None:
    """Raise InvalidArguments unless it is True or False."""
    if not isinstance(value, bool):
        raise InvalidArguments(f"{name} must be True or False, not {shown(value)}")


def check_alg(name: str, alg: str, known: Collection[str]) -> str:
    if not isinstance(alg, str) or alg not in known:
        raise InvalidArguments(not_one_of(name, alg, known))
    return alg


def check_prop_kind(prop_kind: PropKind, known: Collection[PropKind]) -> None:
    """Raises InvalidArguments for what the description does not compute."""
    if not isinstance(prop_kind, PropKind) or prop_kind not in known:
        near = resembling(prop_kind, map(str, known))
        if isinstance(prop_kind, PropKind) and known is FORWARD:
            near = ": gradients have descriptions of their own, such as EltwiseBackward"
        raise InvalidArguments(f"prop_kind must be {' or '.join(map(str, known))}, not {shown(prop_kind)}{near}")


def parameters_of(alg: str) -> tuple[str, ...]:
    """Which of alpha and beta an element-wise function has a use for."""
    return tuple(ALGORITHMS[alg].parameters.split())


def check_eltwise(owner: str, alg: str, alpha: float, beta: float) -> tuple[str, float, float]:
    """Today's name of the algorithm, alpha and beta, which it must have a use for."""
    if isinstance(alg, str) and alg in OLDER_ALGORITHMS:
        return named_today(owner, alg, alpha, beta)
    check_alg(f"{owner}.alg", alg, ALGORITHMS)
    numbers = {name: finite(f"{owner}.{name}", value) for name, value in (("alpha", alpha), ("beta", beta))}
    for name, value in numbers.items():
        if value and name not in parameters_of(alg):
            raise InvalidArguments(f"{owner}.{name} must be 0 for {alg}, not {shown(value)}")
    if alg in ("clip", "clip_v2") and numbers["alpha"] > numbers["beta"]:
        raise InvalidArguments(f"{owner}.alpha is {shown(alpha)}, for {alg} it must not be above beta, {shown(beta)}")
    if alg == "soft_relu" and not numbers["alpha"]:
        raise InvalidArguments(f"{owner}.alpha must not be 0 for soft_relu, which divides by it; 1 is the usual one")
    return alg, numbers["alpha"], numbers["beta"]


def named_today(owner: str, alg: str, alpha: float, beta: float) -> tuple[str, float, float]:
    """An algorithm by its older name: bounded_relu is a clip from 0 to alpha.  Raises InvalidArguments."""
    if alg != "bounded_relu":
        return check_eltwise(owner, OLDER_ALGORITHMS[alg], alpha, beta)
    bound = finite(f"{owner}.alpha", alpha)
    if bound < 0 or finite(f"{owner}.beta", beta):
        raise InvalidArguments(f"{owner}.alpha is {shown(alpha)}, beta {shown(beta)}: {alg} has 0 or more, and 0")
    return OLDER_ALGORITHMS[alg], 0.0, bound


def tensor(name: str, desc: object, types: Container[DataType] = (f32,)) -> MemoryDesc:
    """`desc` if it is a MemoryDesc of one of these types, else InvalidArguments."""
    if not isinstance(desc, MemoryDesc):
        raise InvalidArguments(f"{name} must be a MemoryDesc, not {type(desc).__name__}")
    if desc.dtype not in types:
        raise InvalidArguments(f"{name} is {desc.dtype}, it must be f32")
    return desc
