"""`--sdpa`: scaled dot-product attention; oneDNN's side is a product, a softmax and another product.

Problems are benchdnn's: dims of queries (n, heads, rows, d), of keys as the product takes them (n, groups, d, keys),
and of values (n, groups, keys, e).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Data, Driver, PeerSide, TensorData, by_direction
from asmdnn.bench.drivers.softmax import ALGS
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import FORWARD, NUMBERS, PROP_KINDS, Peer, TensorWork
from asmdnn.bench.values import joined
from asmdnn.bench.words import Option, Settings, data_type, direction, one_of, tag
from asmdnn.definitions.softmax import attention, attention_error, attention_gradient, attention_sums
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.records import dataclass

TRANSPOSED = (0, 1, 3, 2)  # keys as rows, which descriptions have
# Whether a mask's dims are those of the scores, by its name.
BUFFERS = {"buffer": (1, 1, 1, 1), "buffer_1d": (0, 0, 0, 1), "buffer_2d": (0, 0, 1, 1)}
SUMS = "logsumexp"
CAUSAL = ("causal_top_left", "causal_bottom_right")
BF16_ROUNDOFF = 2.0**-9  # of probabilities, which sum up to 1, where a level multiplies bf16
TYPES = ("f32", "bf16", "f16")
SRC, WEIGHTS, DST = (NUMBERS[name] for name in ("src", "weights", "dst"))


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


def plain(dims: tuple[int, ...], dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, "abcd"[: len(dims)])


def together(found: Sequence[tuple[Array, Array]]) -> Answer:
    """Of several results, with their errors."""
    values, errors = zip(*found, strict=True)
    return Answer(joined(values), joined(errors), "numpy")


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
        of_query, of_key, of_value, of_dst = (settings.dt.split(":") * 4)[:4]
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
            self.descs["mask"] = plain(tuple(size if dim else 1 for dim, size in has))
        self.keeps = settings.stats != "none"
        if self.keeps:
            self.descs[SUMS] = plain((*query[:3], 1))
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
        query, key, value = (self.real(data, name) for name in ("query", "key", "value"))
        values = attention(query, key, value, self.depth**-0.5, self.added(data))
        if self.keeps:
            sums, error = attention_sums(query, key, self.depth**-0.5, self.added(data))
            kind, of_dst = self.descs["dst"].dtype, np.full_like(values, attention_error(query, key))
            found = [typed.narrowed(values, of_dst, kind), (sums, error)]
            return together(found)
        of_bf16 = {self.descs[name].dtype for name in ("query", "key", "value")} == {dnn.bf16}
        return self.judged(data, values, attention_error(query, key) + BF16_ROUNDOFF * of_bf16)

    def peer(self, isa: str, threads: int) -> PeerSide:
        return Composition(self, isa, threads)


class SdpaGradientWork(SdpaWork):
    """All three gradients, for that of dst."""

    results = ("diff_query", "diff_key", "diff_value")

    def describe_as(self, scale: float) -> None:
        descs = dict(self.descs)
        descs["diff_dst"] = descs.pop("dst")
        for name in ("query", "key", "value"):
            descs[f"diff_{name}"] = plain(descs[name].dims, descs[name].dtype)
        self.descs, self.flops = descs, self.flops * 5 // 2
        self.desc = dnn.AttentionBackward(**descs, scale=scale, causal=self.is_causal)

    def answer(self, data: TensorData) -> Answer:
        query, key, value, d = (self.real(data, name) for name in ("query", "key", "value", "diff_dst"))
        numbers = self.depth**-0.5, self.added(data)
        values = attention_gradient(query, key, value, d, *numbers)
        sizes = attention_gradient(np.abs(query), np.abs(key), np.abs(value), np.abs(d), *numbers)
        room = attention_error(query, key) * sum(query.shape[2:]) * max(float(np.abs(x).max()) for x in sizes)
        kinds = (self.descs[name].dtype for name in self.results)
        found = [typed.narrowed(x, np.full_like(x, room), kind) for x, kind in zip(values, kinds, strict=True)]
        return together(found)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        """The logsumexp of the forward pass, too."""
        arrays = dict(super().sources(random, exact))
        if self.keeps:
            data = TensorData(arrays, exact)
            numbers = self.depth**-0.5, self.added(data)
            sums, _ = attention_sums(self.real(data, "query"), self.real(data, "key"), *numbers)
            arrays[SUMS] = sums.astype(np.float32)
        return arrays

    def peer(self, isa: str, threads: int) -> PeerSide:
        raise Unimplemented("oneDNN has no gradient of attention")


class Composition:
    """oneDNN's two products and a softmax, in place on one buffer of all scores if types are f32; a PeerSide."""

    def __init__(self, work: SdpaWork, isa: str, threads: int) -> None:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor

        self.work = work
        query, value, dst = (work.descs[name] for name in ("query", "value", "dst"))
        if query.dims[1] != value.dims[1]:
            raise InvalidArguments("the peer onednn has as many heads of keys as of queries")
        scores = plain(work.scores)
        self.mask = work.descs.get("mask", plain((1, 1, *work.scores[2:])))
        more = {"binary_1": Tensor(65536 | 2, self.mask)} if work.settings.mask != "none" else {}
        first = {"src": Tensor(SRC, query), "weights": Tensor(WEIGHTS, work.keys), "dst": Tensor(DST, scores), **more}
        self.shares = plain(work.scores, value.dtype)  # which the second product multiplies
        second = {"src": Tensor(SRC, self.shares), "weights": Tensor(WEIGHTS, value), "dst": Tensor(DST, dst)}
        self.scoring = OnednnPrimitive(self._scores, first, isa, threads)
        shared = Storage(shared={"src": self.scoring.storage["dst"]})
        both = {"src": Tensor(SRC, scores), "dst": Tensor(DST, self.shares)}
        in_place = {"dst": "src"} if self.shares == scores else {}
        self.softmax = OnednnPrimitive(self._softmax, both, isa, threads, ("dst",), in_place, storage=shared)
        if not in_place:
            shared = Storage(shared={"src": self.softmax.storage["dst"]})
        self.result = OnednnPrimitive(self._product, second, isa, threads, storage=shared)

    @property
    def implementation(self) -> str:
        return str(self.scoring.implementation)

    @property
    def run(self) -> Callable[[], object]:
        first, second, third = self.scoring.run, self.softmax.run, self.result.run

        def all_three() -> object:
            return first() or second() or third()

        return all_three

    def write(self, data: Data) -> None:
        arrays = dict(data.arrays)
        keys = arrays["key"].swapaxes(2, 3)
        scores = np.zeros(self.work.scores, np.float32)
        mask = np.broadcast_to(np.float32(self.work.added(data)), self.mask.dims)
        self.scoring.write(
            TensorData({"src": arrays["query"], "weights": keys, "dst": scores, "binary_1": mask}, False)
        )
        shares = scores.astype(self.shares.dtype.numpy)
        self.result.write(TensorData({"src": shares, "weights": arrays["value"], "dst": arrays["dst"]}, False))

    def compute(self, data: Data) -> Array:
        self.write(data)
        self.run()
        return self.result.read()

    def close(self) -> None:
        for primitive in (self.result, self.softmax, self.scoring):
            primitive.close()

    def _scores(self, peer: Peer) -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        ops: list[Any] = [dnn.Eltwise("linear", self.work.depth**-0.5)]
        ops += [dnn.Binary("add", self.mask)] if "binary_1" in peer.descs else []
        return self._product(peer, attributes(peer, dnn.Attr(ops)))

    def _softmax(self, peer: Peer) -> Any:
        create = peer.lib.dnnl_softmax_forward_primitive_desc_create
        what = FORWARD["FWD_I"], ALGS["SOFTMAX"], peer.descs["src"], peer.descs["dst"], 3, peer.null
        return peer.describe(create, *what)

    def _product(self, peer: Peer, attr: Any = None) -> Any:
        src, weights, dst = (peer.descs[name] for name in ("src", "weights", "dst"))
        create = peer.lib.dnnl_matmul_primitive_desc_create
        return peer.describe(create, src, weights, peer.null, dst, peer.null if attr is None else attr)


def _types(word: str) -> str:
    """One for all, or those of query, key, value and dst."""
    given = word.lower().split(":")
    if len(given) != 4:
        return data_type(*TYPES)(word)
    names = [data_type(*TYPES)(name) for name in given]
    return names[0] if len({*names}) == 1 else ":".join(names)


def _title(case: SdpaCase) -> str:
    settings = case.settings
    words = [settings.dt] * (settings.dt != "f32") + [settings.mask] * (settings.mask != "none")
    words += [settings.stats] * (settings.stats != "none")
    return " ".join([":".join("x".join(map(str, dims)) for dims in case.problem.tensors), *words])


DRIVER = Driver(
    "sdpa",
    SdpaSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS, "BWD_DW"),
                      "FWD_I inference (default), FWD_D training, BWD_DW all gradients", True),
        "dt": Option("dt", _types, "f32 (default), bf16, f16; or four, of query, key, value and dst", True),
        "qtag": Option("qtag", tag, "layout of queries: abx (default), acbd, ...", True),
        "ktag": Option("ktag", tag, "of keys, whose last dim is their number; abdc: each key is dense", True),
        "vtag": Option("vtag", tag, "of values", True),
        "dtag": Option("dtag", tag, "of dst", True),
        "mask": Option("mask", one_of("none", *BUFFERS, *CAUSAL),
                       f"none (default), {', '.join((*BUFFERS, *CAUSAL))}", True),
        "mdt": Option("mdt", data_type("f32"), "data type of the mask: f32", True),
        "stats": Option("stats", one_of("none", SUMS),
                        "logsumexp: left by the forward pass, read by BWD_DW; none (default)", True),
        "scale": Option("scale", one_of("library", "mul", "div"),
                        "who says 1 / sqrt(d): library (default), mul or div", True),
    },
    dims_problem(3),
    by_direction(SdpaWork, SdpaGradientWork),
    example="--mode=CP --threads=1 --peer=onednn --ktag=abdc 1x12x512x64:1x12x64x512:1x12x512x64",
    title=_title,
    bandwidth_bound=False,
)  # fmt: skip
