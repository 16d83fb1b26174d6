"""f32 as three products of bf16 by tiles of AMX, emulated: `fpmath_mode` bf16x3."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of
from asmdnn.isa.levels import AVX512_CORE_AMX
from tests.primitives.test_amx_rasters import DEAR_CALLS, TypedDeconv
from tests.primitives.typed_conv import UNIT_ROUNDOFF, TypedConv, computed
from tests.support.plans import proved_desc

ISA = AVX512_CORE_AMX.name
EMULATED = pytest.mark.emulated(ISA)
ATTR = dnn.Attr(fpmath_mode="bf16x3")
F32 = (dnn.f32, dnn.f32, dnn.f32)
SHARE = 3.1 * 2.0**-16  # of a product's size, what is left out of it


def planned(desc: Any, attr: dnn.Attr = ATTR, isa: str = ISA) -> dnn.PrimitiveDesc:
    return proved_desc(desc, attr, dnn.Engine(isa=isa, threads=2, l2_bytes=1 << 20, machine="zen3", tuning=DEAR_CALLS))


def bound(size: Any, terms: int) -> Any:
    """Of three sums, and of the parts that are left out of each product."""
    share = 3 * terms * UNIT_ROUNDOFF
    return size * (SHARE + share / (1 - share))


def product(m: int, k: int, n: int, tags: tuple[str, str, str], batch: int = 0) -> dnn.MatMul:
    dims = [(*[batch] * bool(batch), *pair) for pair in ((m, k), (k, n), (m, n))]
    return dnn.MatMul(*(dnn.MemoryDesc(d, dnn.f32, tag) for d, tag in zip(dims, tags, strict=True)))


@EMULATED
@pytest.mark.parametrize("tags", [("any", "any", "any"), ("ab", "ab", "ab"), ("ba", "ba", "ab")], ids="/".join)
@pytest.mark.parametrize("sizes", [(40, 33, 50), (17, 64, 32), (100, 7, 33)])
def test_products(sizes: tuple[int, int, int], tags: tuple[str, str, str]) -> None:
    """Nearer than bf16 by far, with weights that are passed as f32."""
    pd, random = planned(product(*sizes, tags)), np.random.default_rng(0)
    assert pd.implementation == f"bf16x3+reorder+amx+tiles:{ISA}", pd.refusals
    assert pd.plan.tensors["weights"].dtype == dnn.f32
    m, k, n = sizes
    src, weights = (random.standard_normal(dims).astype(np.float32) for dims in ((m, k), (k, n)))
    found = computed(pd, {"src": src, "weights": weights, "dst": np.zeros((m, n))}, emulated=True)
    size = np.abs(src).astype(np.float64) @ np.abs(weights)
    error = np.abs(found - src.astype(np.float64) @ weights)
    assert (error <= bound(size, k)).all()
    assert (error / size).max() < 2.0**-13  # and bf16 alone would have some 2^-8


@EMULATED
@pytest.mark.parametrize(
    ("form", "text"),
    [
        (TypedConv, "mb2ic20ih6oc33oh6kh3ph1"),
        (TypedConv, "mb1ic32ih7oc16oh4kh1sh2ph0"),
        (TypedDeconv, "mb1ic16ih5oc20oh10kh4sh2ph1"),
    ],
)
@pytest.mark.parametrize("tags", [("any", "any", "any"), ("aBcd8b", "abcd", "abcd")], ids="/".join)
def test_convolutions(form: type[TypedConv], text: str, tags: tuple[str, str, str]) -> None:
    case = form(text, F32, dnn.f32, tags)
    pd, data = planned(case.desc()), case.data()
    assert pd.implementation.startswith("bf16x3+") and "amx" in pd.implementation, pd.refusals
    wanted, size = (sums_of(case.problem, f(data["src"]), f(data["weights"])) for f in (np.asarray, np.abs))
    bias = data["bias"].reshape(1, -1, 1, 1)
    error = np.abs(computed(pd, data, emulated=True) - wanted - bias)
    assert (error <= bound(size, case.problem.reduction) + 2 * UNIT_ROUNDOFF * np.abs(bias)).all()


@pytest.mark.parametrize(
    ("desc", "isa", "reason"),
    [
        (product(40, 64, 48, ("ab", "ab", "ab")), "avx512_core_bf16", "avx512_core_bf16 has no tiles"),
        (product(0, 64, 48, ("ab", "ab", "ab")), ISA, "there is nothing to multiply"),
        (product(1, 64, 48, ("ab", "ab", "ab")), ISA, "vectors are expected to be faster than tiles"),
        (product(64, 1024, 1024, ("ab", "any", "ab")), ISA, "cycles are expected"),
        (TypedConv("g2mb1ic64ih6oc64oh6kh3ph1", F32).desc(), ISA, "weights have 2 groups"),
    ],
)
def test_why_f32_stays(desc: Any, isa: str, reason: str) -> None:
    engine = dnn.Engine(isa=isa, threads=1, machine="sapphire_rapids")
    pd, strict = dnn.primitive_desc(desc, ATTR, engine), dnn.primitive_desc(desc, engine=engine)
    assert (pd.implementation, pd.weights_desc) == (strict.implementation, strict.weights_desc)
    assert any(x.implementation.startswith("bf16x3:") and reason in x.reason for x in pd.refusals), pd.refusals


def test_many_rows_take_them() -> None:
    """What makes the parts pays from some hundreds of rows on."""
    engine = dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids")
    for rows, pays in ((64, False), (512, True)):
        pd = dnn.primitive_desc(product(rows, 1024, 1024, ("ab", "any", "ab")), ATTR, engine)
        assert pd.implementation.startswith("bf16x3+") is pays
