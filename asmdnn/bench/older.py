"""Words of benchdnn's older versions, as today's: functions that have other names now, `--attr`, products by sizes."""

import re
from collections.abc import Callable, Mapping

from asmdnn.errors import InvalidArguments

# By the old name, of its alpha: today's name, alpha and beta.
_FUNCTIONS: Mapping[str, Callable[[float], tuple[str, float, float]]] = {
    "bounded_relu": lambda alpha: ("clip", 0.0, alpha),
    "brelu": lambda alpha: ("clip", 0.0, alpha),
    "gelu": lambda _: ("gelu_tanh", 0.0, 0.0),
    "logsigmoid": lambda _: ("soft_relu", -1.0, 0.0),
    "soft_relu_v2": lambda alpha: ("soft_relu", alpha, 0.0),
    "srelu": lambda _: ("soft_relu", 1.0, 0.0),
}
FUNCTIONS = tuple(_FUNCTIONS)
SOFT_RELU_ALPHA = 1.0  # a post-op without one, as before it had any
_PRODUCT = re.compile(r"(?:mb([0-9]+))?m([0-9]+)n([0-9]+)k([0-9]+)(?=_?n|$)")
_ATTRIBUTE = re.compile(r"(?:^|;)([a-z_]+)=")


def function(alg: str, alpha: float, beta: float) -> tuple[str, float, float]:
    """Today's name, alpha and beta; of a function that has kept its name, what is given."""
    return _FUNCTIONS[alg](alpha) if alg in _FUNCTIONS else (alg, alpha, beta)


def product(problem: str) -> str:
    """`mb2m10n20k30` as the dims of its tensors, `2x10x30:2x30x20`; other problems as they are."""

    def dims(found: re.Match[str]) -> str:
        batch, m, n, k = found.groups()
        each = f"{batch}x" if batch else ""
        return f"{each}{m}x{k}:{each}{k}x{n}"

    return _PRODUCT.sub(dims, problem, count=1) if _PRODUCT.match(problem) else problem


def attributes(word: str) -> dict[str, str]:
    """`oscale=common:2;post_ops=sum;relu`, all attributes at once, as options and their words.

    Those that are not named are empty.  Raises InvalidArguments.
    """
    before, *parts = _ATTRIBUTE.split(word)
    if before:
        raise InvalidArguments(f"--attr={word}: write NAME=VALUE;NAME=VALUE, as in post_ops='sum;relu'")
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    return {f"attr-{name}": text for name, text in ({"oscale": "", "post_ops": ""} | found).items()}
