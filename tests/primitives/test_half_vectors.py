"""Tiles of convolutions whose last vector of channels is half empty, where half a vector is multiplied in less time."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of
from asmdnn.generators.dot.conv import ConvTileSpec
from tests.primitives.typed_conv import TypedConv, computed
from tests.support.plans import proved_desc

BF16 = (dnn.bf16, dnn.bf16, dnn.f32)
LEVELS: dict[str, tuple[Any, ...]] = {
    "avx512_core_bf16": BF16,
    "avx512_core_vnni": (dnn.u8, dnn.s8, dnn.s32),
}
SIGNED = (dnn.s8, dnn.s8, dnn.s32)


def planned(case: TypedConv, isa: str, machine: str = "zen4") -> dnn.PrimitiveDesc:
    engine = dnn.Engine(isa=isa, threads=1, l2_bytes=512 << 10, machine=machine)  # type: ignore[arg-type]
    return proved_desc(case.desc(), case.attr, engine)


def halves_of(pd: dnn.PrimitiveDesc) -> set[bool]:
    return {spec.half_last for spec in pd.plan.specs if isinstance(spec, ConvTileSpec)}


def exact(case: TypedConv) -> dict[str, np.ndarray]:
    """Integers, whose sums are rounded nowhere."""
    return {name: np.rint(8 * x) if case.types == BF16 else x for name, x in case.data().items()}


@pytest.mark.parametrize("level", [pytest.param(name, marks=pytest.mark.isa(name)) for name in LEVELS])
@pytest.mark.parametrize("channels", [9, 17, 20, 24, 25, 33, 40, 56, 65, 72])
@pytest.mark.parametrize("tag", ["axb", "aBx16b"])
def test_sums(level: str, channels: int, tag: str) -> None:
    """Of halves where the last vector has at most 8 channels; padding of dst becomes zero."""
    for types in (LEVELS[level], *[SIGNED] * (level == "avx512_core_vnni")):
        case = TypedConv(f"mb2ic19ih5oc{channels}kh3ph1", types, tags=("axb", "any", tag))
        pd, data = planned(case, level), exact(case)
        assert (True in halves_of(pd)) == (0 < channels % 16 <= 8)
        assert np.array_equal(computed(pd, data), sums_of(case.problem, data["src"], data["weights"]))


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("text", ["g2mb1ic20ih6oc48kh3ph1", "mb1ic3ih9oc24kh3sh2ph1", "mb1ic32ih7oc24kh1"])
def test_groups_pairs_along_rows_and_products_of_pixels(text: str) -> None:
    case = TypedConv(text, BF16, tags=("axb", "any", "axb"))
    pd, data = planned(case, "avx512_core_bf16"), exact(case)
    assert halves_of(pd) == {True}
    assert np.array_equal(computed(pd, data), sums_of(case.problem, data["src"], data["weights"]))


@pytest.mark.isa("avx512_core_bf16")
def test_post_ops_and_old_sums() -> None:
    """A scale by channel, what dst held, and a bias."""
    case = TypedConv(
        "mb1ic40ih6oc24kh1", BF16, dnn.f32, ("axb", "any", "axb"), dnn.Attr([dnn.Sum(1.0), dnn.Eltwise("relu")])
    )
    pd, data = planned(case, "avx512_core_bf16"), exact(case)
    wanted = sums_of(case.problem, data["src"], data["weights"]) + data["bias"].reshape(-1, 1, 1) + data["dst"]
    assert halves_of(pd) == {True}
    assert np.array_equal(computed(pd, data), np.maximum(wanted, 0))


@pytest.mark.parametrize("machine", ["zen3", "zen5", "sapphire_rapids"])
def test_elsewhere_vectors_are_whole(machine: str) -> None:
    case = TypedConv("mb1ic19ih5oc24kh3ph1", BF16)
    assert halves_of(planned(case, "avx512_core_bf16", machine)) == {False}
