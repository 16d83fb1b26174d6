"""What `--bnorm` and `--gnorm` share: benchdnn's problems, such as `g8mb2ic64ih56n"name"`, and answers."""

import numpy as np

from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import AnyCase, TensorData
from asmdnn.bench.image_problem import OfImages, image_words, quoted, read_image
from asmdnn.bench.judge import Answer
from asmdnn.bench.norms import NormWork
from asmdnn.bench.problem_text import quoting
from asmdnn.definitions.normalization import (
    by_groups,
    channels_error,
    inverse_deviation,
    moments,
    normalized,
    statistics_error,
)
from asmdnn.definitions.rounding import as_f32
from asmdnn.records import dataclass

EPSILON = 2.0**-13  # benchdnn's default is 1/16


@dataclass(frozen=True, slots=True)
class NormProblem(OfImages):
    """The dims of src, (n, c) and spatial ones, the groups of channels, epsilon, and the problem's name."""

    dims: tuple[int, ...]
    groups: int = 1
    epsilon: float = EPSILON
    name: str = ""

    def __str__(self) -> str:
        groups = f"g{self.groups}" if self.groups > 1 else ""
        epsilon = f"eps{self.epsilon:.9g}" if self.epsilon != EPSILON else ""
        return f"{groups}{image_words(self.dims)}{epsilon}{quoted(self.name)}"


def parse(text: str) -> NormProblem:
    """benchdnn's words; g 1.  Raises InvalidArguments."""
    with quoting(text):
        dims, sizes, numbers, name = read_image(text, ("g",), ("eps",))
    return NormProblem(dims, sizes.get("g", 1), numbers.get("eps", EPSILON), name)


class ChannelNormWork(NormWork):
    is_batch = True
    has_relu = False

    def __init__(self, case: AnyCase) -> None:
        settings, self.problem, dims = case.settings, case.problem, case.problem.dims
        self.tensor = desc_of(dims, settings.dt, settings.tag)
        super().__init__(settings, self.tensor, self.tensor)
        self.groups = dims[1] if self.is_batch else self.problem.groups
        statistics = dims[1:2] if self.is_batch else (dims[0], self.groups)
        vector = desc_of(dims[1:2], "f32", "abx")
        self.add_tensors(desc_of(statistics, "f32", "abx"), vector, ("mean", "variance"))

    def answer(self, data: TensorData) -> Answer:
        x, epsilon = self.real(data, "src"), as_f32(self.problem.epsilon)
        grouped = by_groups(x, self.groups)
        found = moments(grouped, (0, 2, 3) if self.is_batch else (2, 3))
        if self.given:
            found = self.real(data, "mean").reshape(found[0].shape), self.real(data, "variance").reshape(found[0].shape)
        values = normalized(grouped, *found, epsilon).reshape(x.shape)
        factor = np.broadcast_to(inverse_deviation(found[1], epsilon), grouped.shape).reshape(x.shape)
        per_channel = (1, x.shape[1], *[1] * (x.ndim - 2))
        scale, shift = (
            self.parameter(data, name, default, per_channel) for name, default in (("scale", 1.0), ("shift", 0.0))
        )
        plain, size = values * scale + shift, float(np.abs(x).max(initial=0))
        if "src_1" in self.descs:
            plain = plain + self.real(data, "src_1")
        error = channels_error(size, values, factor, scale, shift, plain)
        dst = self.judged(data, np.maximum(plain, 0) if self.has_relu else plain, error)
        errors = statistics_error(size)
        return self.answers(dst, {"mean": (found[0], errors[0]), "variance": (found[1], errors[1])})
