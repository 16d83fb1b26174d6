"""What networks that were written in Python are kept under on disk: whatever decides results decides the key."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.narrow.storage import IN_F32, precision_of
from asmdnn.network.packs.kept_graph import key_of_model
from asmdnn.network.symbols import Held
from tests.network.nets import engine, random

W = random(6, 6)
BIAS = random(6)


def key(weights: Any = W, bias: Any = BIAS, name: str = "net", function: Any = None, **more: Any) -> str | None:
    """Of a small network, in which one thing is another one."""
    graph = dnn.Graph(name)
    x = graph.input("x", (2, 6), more.get("dtype", np.float32))
    y = graph.apply("Gemm", x, Held(weights), Held(bias), alpha=more.get("alpha", 1.0))
    if function:
        y = graph.map(function, y)
    return key_of_model(
        graph._model({more.get("output", "y"): y}), more.get("engine", engine(1)), more.get("word", IN_F32)
    )


def test_equal_networks_have_one_key() -> None:
    found = key()
    assert found
    assert key(W.copy(), BIAS.copy()) == found
    assert key(bias=np.repeat(BIAS, 2)[::2]) == found, "strides are none of the results"


ONE_BIT = W.copy()
ONE_BIT.view(np.int32)[3, 4] ^= 1


@pytest.mark.parametrize(
    "other",
    [
        lambda: key(ONE_BIT),
        lambda: key(W.T),
        lambda: key(np.ascontiguousarray(W.T)),
        lambda: key(W * -1),
        lambda: key(bias=BIAS[:, None] * np.ones((1, 6), np.float32)),
        lambda: key(name="another"),
        lambda: key(alpha=np.nextafter(1.0, 2)),
        lambda: key(output="z"),
        lambda: key(dtype=np.float16),
        lambda: key(engine=engine(2)),
        lambda: key(engine=dnn.Engine(threads=1, isa="avx2", machine="zen3", deterministic="batch")),
        lambda: key(word=precision_of("bf16", ())),
    ],
)  # fmt: skip
def test_what_differs_has_another_key(other: Callable[[], str | None]) -> None:
    assert other() not in (None, key())


def test_turned_weights_are_not_those_of_equal_bytes() -> None:
    assert key(W.T) != key(np.ascontiguousarray(W)), "the same bytes, by columns and by rows"


def test_what_has_no_text_is_not_kept() -> None:
    assert key(function=lambda v: v * 2) is None
