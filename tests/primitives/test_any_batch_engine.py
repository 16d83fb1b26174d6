"""`Engine(deterministic="batch")`: functions of arrays give a row or image the bits that it has alone."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from tests.primitives.test_any_batch import LEVELS, SOME, asking, engine, random, same

Call = Callable[..., Any]  # of an array of items, and the engine


def scaled(*dims: int) -> np.ndarray:
    return random(*dims) / np.float32(np.sqrt(dims[-3]))


def layer(cell: str, gates: int, inputs: int, units: int) -> Mapping[str, np.ndarray]:
    biases = gates + (cell == "lbr_gru")
    return {
        "weights_layer": scaled(1, 1, inputs, gates, units),
        "weights_iter": scaled(1, 1, units, gates, units),
        "bias": random(1, 1, biases, units),
    }


def recurrent(cell: str, gates: int, inputs: int, units: int) -> Call:
    weights, linear = layer(cell, gates, inputs, units), {"linear_before_reset": True} if cell == "lbr_gru" else {}
    function = getattr(dnn.ops, "gru" if cell == "lbr_gru" else cell)
    return lambda x, on: function(np.ascontiguousarray(x.swapaxes(0, 1)), weights, engine=on, **linear)[0].swapaxes(
        0, 1
    )


KERNEL, SCALE = random(24, 16, 3, 3), random(16)
# (dims of an item, the call), those first whose plans depend on the number of items without the engine's word
CALLS: dict[str, tuple[tuple[int, ...], Call]] = {
    "gru": ((7, 64), recurrent("gru", 3, 64, 64)),
    "lbr_gru": ((5, 20), recurrent("lbr_gru", 3, 20, 40)),
    "rnn": ((6, 10), recurrent("rnn", 1, 10, 16)),
    "matmul": ((300,), lambda x, on: dnn.ops.matmul(x, BY_COLUMNS, engine=on)),
    "lstm": ((7, 20), recurrent("lstm", 4, 20, 48)),
    "layer norm": ((96,), lambda x, on: dnn.ops.layer_norm(x, random_of(96), engine=on)),
    "layer norm of long rows": ((4000,), lambda x, on: dnn.ops.layer_norm(x, engine=on)),
    "rms norm": ((3, 384), lambda x, on: dnn.ops.rms_norm(x, engine=on)),
    "group norm": ((16, 9, 9), lambda x, on: dnn.ops.group_norm(x, 4, SCALE, SCALE, engine=on)),
    "group norm of a channel": ((1, 6, 5), lambda x, on: dnn.ops.group_norm(x, 1, engine=on)),
    "group norm by units": ((16, 24, 24), lambda x, on: dnn.ops.group_norm(x, 4, SCALE, SCALE, engine=on)),
    "batch norm": ((16, 7, 7), lambda x, on: dnn.ops.batch_norm(x, SCALE, SCALE, SCALE, SCALE**2, engine=on)),
    "lrn": ((16, 5, 5), lambda x, on: dnn.ops.lrn(x, engine=on)),
    "softmax": ((1000,), lambda x, on: dnn.ops.softmax(x, engine=on)),
    "softmax of channels": ((21, 9, 9), lambda x, on: dnn.ops.softmax(x, axis=1, engine=on)),
    "attention": ((4, 17, 32), lambda x, on: dnn.ops.attention(x, x, x, engine=on)),
    "attention of one query": ((4, 33, 32), lambda x, on: dnn.ops.attention(x[:, :, :1], x, x, engine=on)),
    "mean": ((19, 14, 14), lambda x, on: dnn.ops.avg_pool(x, 3, engine=on)),
    "mean of all": ((8, 56, 56), lambda x, on: dnn.ops.adaptive_avg_pool(x, 1, engine=on)),
    "sums of rows": ((3000,), lambda x, on: dnn.ops.reduce(x, "sum", 1, engine=on)),
    "sums of columns": ((300, 5), lambda x, on: dnn.ops.reduce(x, "sum", 1, engine=on)),
    "sums of images": ((8, 20, 20), lambda x, on: dnn.ops.reduce(x, "norm_lp_sum", (1, 2, 3), p=2.0, engine=on)),
    "cumulative sums": ((300,), lambda x, on: dnn.ops.cumsum(x, 1, engine=on)),
    "resampling": ((3, 9, 9), lambda x, on: dnn.ops.resize(x, (17, 23), mode="cubic", engine=on)),
    "gelu": ((77,), lambda x, on: dnn.ops.eltwise(x, "gelu_erf", engine=on)),
    "top-k": ((1000,), lambda x, on: dnn.ops.topk(x, 5, engine=on)[0]),
    "deconvolution": ((24, 9, 9), lambda x, on: dnn.ops.conv_transpose2d(x, KERNEL, stride=2, engine=on)),
    "convolution": ((16, 9, 9), lambda x, on: dnn.ops.conv2d(x, KERNEL, padding=1, engine=on)),
    "winograd": ((16, 9, 9), lambda x, on: dnn.ops.conv2d(x, KERNEL, padding=1, algorithm="auto", engine=on)),
}
CHOSEN_BY_ITEMS = ("gru", "rnn", "matmul")
BY_COLUMNS = np.asfortranarray(random(300, 300))


def random_of(size: int) -> np.ndarray:
    """The same numbers for every call."""
    return np.linspace(-1, 1, size, dtype=np.float32)


def differing(name: str, isa: str, engines: Callable[[str, int], dnn.Engine]) -> list[tuple[int, int]]:
    dims, call = CALLS[name]
    x = np.random.default_rng(5).standard_normal((64, *dims)).astype(np.float32)
    whole = call(x, engines(isa, 1))
    return [(n, t) for n in (33, *SOME) for t in (1, 3) if not same(call(x[:n].copy(), engines(isa, t)), whole[:n])]


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", CALLS)
def test_bits_do_not_depend_on_neighbours(name: str, isa: str) -> None:
    assert differing(name, isa, asking) == []


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", CHOSEN_BY_ITEMS)
def test_the_comparison_can_fail(name: str) -> None:
    assert differing(name, "avx2", engine)


def test_an_engine_that_asks_is_another_value() -> None:
    plain = engine("avx2")
    assert asking("avx2") != plain
    assert dnn.Engine(deterministic=True, isa="avx2").tuning == dnn.Engine(isa="avx2").tuning
    attr = dnn.primitive_desc(product(), engine=asking("avx2")).attr
    assert attr == dnn.Attr(deterministic="batch")
    requests = ((dnn.Attr(), plain), (attr, plain), (dnn.Attr(), asking("avx2")))
    neither, by_attr, by_engine = (dnn.primitive_desc(product(), *each).implementation for each in requests)
    assert by_attr == by_engine != neither


def product() -> dnn.MatMul:
    a, b = dnn.MemoryDesc((1, 300), dnn.f32, "ab"), dnn.MemoryDesc((300, 300), dnn.f32, "ba")
    return dnn.MatMul(a, b, dst=dnn.MemoryDesc((1, 300), dnn.f32, "ab"))


@pytest.mark.parametrize("wrong", ["images", None, 1, b"batch", ["batch"]])
def test_other_words(wrong: Any) -> None:
    with pytest.raises(InvalidArguments, match="deterministic must be True or False, or 'batch', not"):
        dnn.Engine(isa="avx2", deterministic=wrong)


def test_with_permission_to_round() -> None:
    with pytest.raises(InvalidArguments, match="deterministic='batch' with fpmath_mode 'bf16'"):
        dnn.primitive_desc(product(), dnn.Attr(fpmath_mode="bf16"), asking("avx2"))
