"""Attention as cases: queries (n, heads, rows, d), keys (n, groups, d, keys), values (n, groups, keys, e)."""

import math

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.dims import DimsProblem, desc_of
from asmdnn.bench.driver import Array, Case, Data, PeerSide, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import PROP_KINDS, TensorWork
from asmdnn.bench.words import Settings, words_of_each
from asmdnn.definitions.softmax import (
    attention,
    attention_error,
    attention_gradient,
    attention_gradient_rounding,
    attention_sums,
)
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.records import dataclass

TRANSPOSED = (0, 1, 3, 2)  # keys as rows, which descriptions have
# Whether a mask's dims are those of the scores, by its name.
BUFFERS = {"buffer": (1, 1, 1, 1), "buffer_1d": (0, 0, 0, 1), "buffer_2d": (0, 0, 1, 1)}
SUMS = "logsumexp"
CAUSAL = ("causal_top_left", "causal_bottom_right")
FACTORS = ("query", "key", "value")
POWERS_ERROR = 2.0**-13.5  # and of the logarithm of their sum, there
BF16_ROUNDOFF = 2.0**-9  # of probabilities, which sum up to 1, where a level multiplies bf16


@dataclass(frozen=True, slots=True)
class SdpaSettings(Settings):
    dir: str = "FWD_I"
    dt: str = "f32"
    qtag: str = "abx"
    ktag: str = "abx"
    vtag: str = "abx"
    dtag: str = "abx"
    mask: str = "none"
    mdt: str = "f32"
    scale: str = "library"
    stats: str = "none"


SdpaCase = Case[SdpaSettings, DimsProblem]


class SdpaWork(TensorWork):
    exactness = (False,)
    peer_slack = 10.0

    def __init__(self, case: SdpaCase) -> None:
        query, key, value = case.problem.tensors
        settings = self.settings = case.settings
        if not {len(query), len(key), len(value)} == {4}:
            raise InvalidArguments("query, key and value have 4 dims: images, heads, and those of matrices")
        if query[3] != key[2] or key[3] != value[2]:
            raise InvalidArguments(
                f"a head's keys are {key[2]}x{key[3]}, they must be {query[3]}x{value[2]}: by query and value"
            )
        if settings.mask == CAUSAL[0] and query[2] != key[3]:
            raise Unimplemented(
                f"--mask={settings.mask} of {query[2]} queries and {key[3]} keys is not built yet, {CAUSAL[1]} is"
            )
        self.scores, self.depth = (*query[:3], key[3]), key[2]
        self.is_causal = settings.mask in CAUSAL
        result = (*query[:3], value[3])
        of_query, of_key, of_value, of_dst = words_of_each(settings.dt, 4)
        self.keys = desc_of(key, of_key, settings.ktag)  # as the product takes them
        rows = (*key[:2], key[3], key[2])
        self.descs = {
            "query": desc_of(query, of_query, settings.qtag),
            "key": desc_of(rows, of_key, "any") if settings.ktag == "any" else self.keys.permute_axes(TRANSPOSED),
            "value": desc_of(value, of_value, settings.vtag),
            "dst": desc_of(result, of_dst, settings.dtag),
        }
        if settings.mask in BUFFERS:
            has = zip(BUFFERS[settings.mask], self.scores, strict=True)
            self.descs["mask"] = desc_of(tuple(size if dim else 1 for dim, size in has), "f32", "abcd")
        self.keeps = settings.stats != "none"
        if self.keeps:
            self.descs[SUMS] = desc_of((*query[:3], 1), "f32", "abcd")
        seen = math.prod(self.scores) * (1 - query[2] / key[3] / 2 if self.is_causal else 1)
        self.flops = int(2 * seen * (query[3] + value[3]))
        scale = 0.0 if settings.scale == "library" else self.depth**-0.5  # the same for each way to say it
        self.describe_as(scale)

    def describe_as(self, scale: float) -> None:
        """Make the description of the tensors."""
        kind = PROP_KINDS[self.settings.dir]
        self.results = ("dst", SUMS) if self.keeps else ("dst",)
        self.desc = dnn.AttentionForward(kind, **self.descs, scale=scale, causal=self.is_causal)

    def added(self, data: Data) -> Array | float:
        """The mask, and the future of causal attention."""
        if "mask" in self.descs:
            return data.arrays["mask"].astype(np.float64)
        rows, keys = self.scores[2:]
        hidden = np.arange(keys) > np.arange(rows)[:, None] + keys - rows
        return np.where(hidden, -np.inf, 0.0) if self.is_causal else 0.0

    def answer(self, data: TensorData) -> Answer:
        query, key, value = (self.real(data, name) for name in FACTORS)
        values = attention(query, key, value, self.depth**-0.5, self.added(data))
        of_bf16 = {self.descs[name].dtype for name in FACTORS} == {dnn.bf16}
        of_values = attention_error(query, key) + BF16_ROUNDOFF * of_bf16
        if self.keeps:
            sums, error = attention_sums(query, key, self.depth**-0.5, self.added(data))
            kind, of_dst = self.descs["dst"].dtype, np.full_like(values, of_values)
            found = [typed.narrowed(values, of_dst, kind), (sums, error + POWERS_ERROR * of_bf16)]
            return typed.together(found)
        return self.judged(data, values, of_values)

    def peer(self, isa: str, threads: int) -> PeerSide:
        if self.lacks:
            raise Unimplemented(self.lacks)
        from asmdnn.bench.peers.onednn_attention import Composition

        return Composition(self, isa, threads)


class SdpaGradientWork(SdpaWork):
    """All three gradients, for that of dst."""

    results = tuple(f"diff_{name}" for name in FACTORS)
    lacks = "oneDNN has no gradient of attention"

    def describe_as(self, scale: float) -> None:
        descs = dict(self.descs)
        descs["diff_dst"] = descs.pop("dst")
        for name in FACTORS:
            descs[f"diff_{name}"] = desc_of(descs[name].dims, descs[name].dtype.name, "abcd")
        self.descs, self.flops = descs, self.flops * 5 // 2
        self.desc = dnn.AttentionBackward(**descs, scale=scale, causal=self.is_causal)

    def answer(self, data: TensorData) -> Answer:
        query, key, value, d = (self.real(data, name) for name in (*FACTORS, "diff_dst"))
        numbers = self.depth**-0.5, self.added(data)
        values = attention_gradient(query, key, value, d, *numbers)
        sizes = attention_gradient(np.abs(query), np.abs(key), np.abs(value), np.abs(d), *numbers)
        room = attention_error(query, key) * sum(query.shape[2:]) * max(float(np.abs(x).max()) for x in sizes)
        kinds = (self.descs[name].dtype for name in self.results)
        rooms = [np.full_like(x, room) for x in values]
        if {self.descs[name].dtype for name in (*FACTORS, "diff_dst")} == {dnn.bf16}:
            rounded = attention_gradient_rounding(query, key, value, d, *numbers)
            rooms = [x + BF16_ROUNDOFF * y for x, y in zip(rooms, rounded, strict=True)]
        found = [typed.narrowed(*x) for x in zip(values, rooms, kinds, strict=True)]
        return typed.together(found)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        """The logsumexp of the forward pass, too."""
        arrays = dict(super().sources(random, exact))
        if self.keeps:
            data = TensorData(arrays, exact)
            numbers = self.depth**-0.5, self.added(data)
            sums, _ = attention_sums(self.real(data, "query"), self.real(data, "key"), *numbers)
            arrays[SUMS] = sums.astype(np.float32)
        return arrays
