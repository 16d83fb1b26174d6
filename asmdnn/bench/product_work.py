"""What drivers of sums of products are tables of: bias, scales, zero points, types, and a definition with its sizes.

The answer is the definition's in float64.  Real numbers may be off by gamma(roundings) times the size of what is added
up (definitions/rounding.py), after which chains.py follows post-ops; sums of small integers must be equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import (
    UNSCALED,
    WORDS,
    ScaledSettings,
    ScaleWords,
    numbers_of,
    scaled_options,
    scales_of,
    zero_points_option,
)
from asmdnn.bench.driver import Array, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.numbers import ALL_F32, INTEGERS, LARGEST_INTEGER, LARGEST_INTEGERS, TypedNumbers
from asmdnn.bench.products import Filler
from asmdnn.bench.quantization import Quantity
from asmdnn.bench.tensor_work import Peer, TensorWork
from asmdnn.bench.typed import answer, narrowed
from asmdnn.bench.typed_words import any_bias_type, older_types_of_tensors, typed, types_of_tensors
from asmdnn.bench.values import NAMED, decoded, encoded, joined
from asmdnn.bench.words import Option, option, tag
from asmdnn.definitions.rounding import gamma
from asmdnn.primitives.products.plan import THRICE
from asmdnn.records import dataclass
from asmdnn.types import FLOATS8, DataType, f8_e4m3

Doubles = npt.NDArray[np.float64]
Arrays = Mapping[str, npt.NDArray[Any]]
ENDS = 2  # roundings of a sum beside its products': of the bias, and the last one
SCALED_ENDS = 4  # the same with the scales of src and of weights
HALF_ROUNDINGS = 73 << 13  # the same of sums of f16, in runs of k: 73 of 2^-11, in those of 2^-24
THRICE_ROUNDINGS = 794  # what f32 as two bf16 leaves out of a product, 3.1 of 2^-16, in the same


@dataclass(frozen=True, slots=True)
class ProductSettings(ScaledSettings):
    dt: str = "f32"
    stag: str = "any"
    wtag: str = "any"
    dtag: str = "any"
    bia_dt: str = "undef"
    zero_points: tuple[Quantity, ...] = ()

    @property
    def types(self) -> dict[str, DataType]:
        """Of the tensors, by their names; a bias that is not said is f32."""
        bias = "f32" if self.bia_dt == "undef" else self.bia_dt
        return {**typed(self.dt), "bias": NAMED[bias]}


def product_options(src: str, weights: str, dst: str, bias: str) -> dict[str, Option]:
    """Of ProductSettings; what is said of the layouts and of the bias."""
    return {
        "dt": option(types_of_tensors, "data types of src, weights and dst: f32 (default), u8:s8:f32, ..."),
        "cfg": option(older_types_of_tensors, "the same in older words", field="dt", describes=False),
        "bia-dt": option(any_bias_type, bias),
        "stag": option(tag, src),
        "wtag": option(tag, weights),
        "dtag": option(tag, dst),
        **scaled_options(),
        **zero_points_option(with_weights=True),
    }


class ProductWork(TensorWork):
    """typed: types and zero points, by arguments.  scales: what is said of them.  reduction: products in a sum.

    `sums` and `sizes` are the definition.  They are given numbers, src less its zero point, and have a value for each
    result; bias and attributes come after them.
    """

    typed: TypedNumbers = ALL_F32
    scales: ScaleWords = UNSCALED
    reduction: int

    def sums(self, x: Arrays) -> Sequence[Doubles]:
        raise NotImplementedError

    def sizes(self, x: Arrays) -> Sequence[Doubles]:
        """Of what is added up."""
        raise NotImplementedError

    @property
    def roundings(self) -> int:
        """Of a product, on its way through a sum."""
        return self.reduction + self.coarse_roundings

    @property
    def coarse_roundings(self) -> int:
        """Of what attributes allow beside sums in f32."""
        return HALF_ROUNDINGS * self.may_sum_halves + THRICE_ROUNDINGS * self.may_be_thrice

    @property
    def may_be_thrice(self) -> bool:
        """Whether products of f32 may be three of bf16, which have not all bits of integers."""
        return self.attr.fpmath_mode == THRICE

    @property
    def may_sum_halves(self) -> bool:
        """Whether sums may be f16, where the level has those."""
        of_halves = all(self.typed.of(name) == dnn.f16 for name in ("src", "weights"))
        return of_halves and self.attr.accumulation_mode in ("any", "f16")

    def set_attributes(self, settings: Any, dims: Mapping[str, tuple[int, ...]], channels: Mapping[str, int]) -> None:
        """By the words for them; channels: the dim of each tensor that `per_oc` means."""
        self.scales = scales_of(settings.scales, dims, channels)
        self.typed, points = numbers_of(settings.types, settings.zero_points, dims, settings.fpmath)
        more = {"channels": channels["dst"], "scales": self.scales.masks, "zero_points": points}
        groups = {WORDS[x.argument]: x.groups for x in settings.zero_points if x.groups} | dict(self.scales.groups)
        more |= {"groups": groups} if groups else {}
        self.attr = settings.attr(dims["dst"], **more)
        self.quantities = {**self.scales.arrays, **self.typed.zero_points}
        self.exactness, self.peer_slack = chains.exactness(self.attr), chains.peer_slack(self.attr)
        if groups or self.typed.weights is not None or self.may_sum_halves or self.may_be_thrice:
            self.exactness = (False,)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        fill = Filler(random, self.reduction, exact, self.typed)
        read = [name for name in self.descs if name not in self.results and name != "bias"]
        arrays = fill.factors(read, [self.descs[name].dims for name in read])
        if "bias" in self.descs:
            bound = LARGEST_INTEGERS[f8_e4m3] if self.descs[self.results[0]].dtype in FLOATS8 else LARGEST_INTEGER
            arrays["bias"] = fill.values("bias", self.descs["bias"].dims, bound)
        return {name: encoded(values, self.descs[name].dtype) for name, values in arrays.items()}

    def old(self, random: np.random.Generator, exact: bool) -> Array:
        name = self.results[0]
        values = Filler(random, self.reduction, exact, self.typed).values(name, self.descs[name].dims)
        return encoded(values, self.descs[name].dtype)

    def numbers_of(self, data: TensorData) -> dict[str, npt.NDArray[Any]]:
        """What `sums` is given."""
        read = {name: desc for name, desc in self.descs.items() if name not in self.results}
        x = {name: decoded(data.arrays[name], desc.dtype) for name, desc in read.items()}
        if "src" in x:
            x["src"] = self.typed.centred(x, "src")
        if isinstance(self.scales.source, np.ndarray):
            x["src"] = x["src"] * self.scales.source
        if self.scales.groups or self.typed.weights is not None:
            points = 0 if self.typed.weights is None else self.typed.weights
            x["weights"] = (x["weights"] - np.float64(points)) * self.scales.weights
        return x

    def for_sizes(self, data: TensorData, x: Arrays) -> Arrays:
        """What `sizes` is given: weights and their zero points are scaled apart."""
        if self.typed.weights is None:
            return x
        weights = np.abs(self.real(data, "weights")) + np.abs(self.typed.weights)
        return {**x, "weights": weights * np.abs(self.scales.weights)}

    def answer(self, data: TensorData) -> Answer:
        x = self.numbers_of(data)
        values, sizes = list(self.sums(x)), self.sizes(self.for_sizes(data, x))
        values[0] = values[0] * self.scales.factor + self._bias(x)
        roundings = zip(self.results, values, self._errors(x, sizes), strict=True)
        found = [self._result(data, name, value, error) for name, value, error in roundings]
        is_exact = data.exact and chains.is_exact(self.attr)
        tolerance = 0.0 if is_exact else joined([np.broadcast_to(one.tolerance, one.values.shape) for one in found])
        return Answer(joined([one.values for one in found]), tolerance, "numpy")

    def _errors(self, x: Arrays, sizes: Sequence[Doubles]) -> list[Doubles]:
        """Of the sums, with bias and scales; integers that are left as they are have none."""
        is_plain = not (self.attr.post_ops or self.attr.scales or "bias" in x)
        of_integers = all(self.typed.of(name) in INTEGERS for name in ("src", "weights"))
        if is_plain and of_integers and self.descs[self.results[0]].dtype == dnn.s32:
            return [np.zeros(size.shape) for size in sizes]
        bound = gamma(self.roundings + (SCALED_ENDS if self.scales.masks else ENDS))
        first = sizes[0] * np.abs(self.scales.factor) + np.abs(self._bias(x))
        return [bound * size for size in (first, *sizes[1:])]

    def _result(self, data: TensorData, name: str, values: Doubles, error: Doubles) -> Answer:
        if name == "dst":
            return self.judged(data, values, error, self.scales.divisor, self.typed.shifts.get("dst", 0))
        kind = self.descs[name].dtype
        if name == self.results[0] and self.attr.post_ops:  # a gradient, which they get as dst does
            return answer(self.attr, values, error, {**data.arrays, "dst": data.arrays[name]}, kind)
        return Answer(*narrowed(values, error, kind), "numpy")

    def _bias(self, x: Arrays) -> Doubles | float:
        """Broadcast to dst, of which a vector is along dim 1; 0 without one."""
        if "bias" not in x:
            return 0.0
        bias = x["bias"].astype(np.float64)
        return bias.reshape(-1, *[1] * (self.descs["dst"].ndims - 2)) if bias.ndim == 1 else bias

    def tolerance(self, data: TensorData) -> Array | float:
        """Without the values where that is possible: of chains of Sum and relu without scales."""
        if data.exact and chains.is_exact(self.attr):
            return 0.0
        x, added = self.numbers_of(data), self._added(data)
        if added is None or any(desc.dtype != dnn.f32 for desc in self.descs.values()):
            return self.answer(data).tolerance
        errors = self._errors(x, self.sizes(self.for_sizes(data, x)))
        ends = self.roundings + ENDS
        errors[0] = errors[0] / gamma(ends) + added
        return joined([gamma(ends + 2 * len(self.attr.post_ops)) * errors[0], *errors[1:]])

    def _added(self, data: TensorData) -> Doubles | float | None:
        """What the chain adds to the size of sums, each with two roundings; None for other chains than of Sum and relu,
        which does not increase a difference."""
        if self.attr.scales:
            return None
        added: Doubles | float = 0.0
        for op in self.attr.post_ops:
            if isinstance(op, dnn.Sum):
                added = added + abs(op.scale) * (np.abs(data.arrays["dst"].astype(np.float64)) + abs(op.zero_point))
            elif not (isinstance(op, dnn.Eltwise) and op.alg == "relu" and abs(op.alpha) <= 1 and op.scale == 1):
                return None
        return added

    def attributes_of(self, peer: Peer) -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        return attributes(peer, self.attr, numbers=self.numbers)
