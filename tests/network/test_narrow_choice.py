"""Which products multiply bf16: chains stay together, and the end is never above all f32 or all bf16."""

from collections.abc import Sequence

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.network.narrow.choosing import NarrowProduct, TypeChoice
from tests.network.nets import random
from tests.network.test_precision import mobile, types

AMX = "avx512_core_amx"


def chosen(candidates: Sequence[NarrowProduct], wide: Sequence[str], conversion: float = 10) -> set[str]:
    """With values that only products make, which store what they multiply."""
    found = set[str]()
    choice = TypeChoice(candidates, wide, lambda name: conversion, found.__contains__)
    choice.chosen = found
    choice.make()
    return found


def cycles(candidates: Sequence[NarrowProduct], wide: Sequence[str], narrow: set[str], conversion: float = 10) -> float:
    """Spelt out: products, and each value that is read as bf16 and made or read as f32, too."""
    total = sum(each.now if each.result in narrow else each.before for each in candidates)
    read = {name for each in candidates if each.result in narrow for name in each.operands}
    as_f32 = {*wide, *(name for each in candidates if each.result not in narrow for name in each.operands)}
    return total + conversion * sum(name not in narrow or name in as_f32 for name in read)


def test_a_chain_stays_together() -> None:
    """The one between costs a little more in bf16, which is less than what its neighbours would convert."""
    chain = [
        NarrowProduct("a", ("x",), 100, 50),
        NarrowProduct("b", ("a",), 30, 32),
        NarrowProduct("c", ("b",), 100, 50),
    ]
    assert chosen(chain, ()) == {"a", "b", "c"}


def test_nobody_follows_for_nothing() -> None:
    """From all, `a` would stay for `b`, and `b` for what it saves with an operand of bf16."""
    pair = [NarrowProduct("a", ("x",), 100, 105), NarrowProduct("b", ("a",), 30, 29)]
    assert chosen(pair, ("b",)) == set()


def test_the_unwilling_stay() -> None:
    assert chosen([NarrowProduct("a", ("x",), 100, 50, lambda: False)], ()) == set()


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    """No product alone would do better otherwise, and neither all nor none of them."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(9)]
    candidates = [
        NarrowProduct(
            name,
            tuple(rng.choice(["x", *names[:i]], min(i + 1, 2), replace=False)),
            float(rng.integers(1, 40)),
            float(rng.integers(1, 40)),
        )
        for i, name in enumerate(names)
    ]
    wide = [str(name) for name in rng.choice(names, 2)]
    found = chosen(candidates, wide)
    least = cycles(candidates, wide, found)
    others = [set(names), set[str](), *(found ^ {name} for name in names)]
    assert all(least <= cycles(candidates, wide, other) for other in others)


@pytest.mark.parametrize("isa", [AMX, "avx512_core_bf16"])
def test_tiles_are_not_counted_as_slow_pairs(isa: str) -> None:
    """Such a CPU takes 2.6 times as long for a pair by vectors; tiles are expected as such.  They beat Winograd's
    algorithm in f32."""
    g = dnn.Graph()
    x = g.input("x", (1, 128, 28, 28))
    y = g.apply("Conv", x, random(128, 128, 3, 3), pads=(1,) * 4, name="deep")
    net = g.compile(engine=dnn.Engine(isa=isa, machine="sapphire_rapids", threads=1), precision="bf16", y=y)  # type: ignore[arg-type]
    (step,) = [step for step in net.segments[0].steps if "deep" in step.label]  # type: ignore[union-attr]
    wanted = f"direct+raster+amx+tiles:{AMX}" if isa == AMX else "reorder+winograd:avx512_core"
    assert step.pd.implementation == wanted


def test_depthwise_layers_between_products_of_tiles_are_bf16() -> None:
    """They take as long in f32, but what is before and after them would be converted in passes of their own."""
    g, outputs = mobile()
    net = g.compile(engine=dnn.Engine(isa=AMX, machine="sapphire_rapids", threads=1), precision="bf16", **outputs)
    assert set(types(net, "src").values()) == {"bf16"}
    reorders = [step.label for step in net.segments[0].steps if "reorder" in step.label]  # type: ignore[union-attr]
    assert reorders == ["reorder x"]


def test_a_defect_is_not_hidden_by_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that does not do what is asked ends planning: by f32 and apart the layer would only be slower."""

    def reject(*_: object) -> None:
        raise PlanError("the plan does not apply the post-op")

    monkeypatch.setattr("asmdnn.primitives.core.implementation.check_uses", reject)
    g = dnn.Graph()
    y = g.apply("Relu", g.apply("Conv", g.input("x", (1, 16, 9, 9)), random(16, 16, 3, 3)))
    with pytest.raises(PlanError, match="does not apply the post-op"):
        g.compile(engine=dnn.Engine(isa="avx2", threads=1), y=y)
