"""Gradients of weights with post-ops: what they read and write beside, with the bits of two passes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.functions.expression import Builder
from asmdnn.primitives.attributes.user_post_op import traced_before
from tests.primitives.every_kind import t

NAME = "updated"
PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"


def engine(isa: str, threads: int = 1) -> dnn.Engine:
    """One whose L2 holds no update."""
    return dnn.Engine(isa=isa, threads=threads, l2_bytes=1 << 10)  # type: ignore[arg-type]


def gradient(
    weights: tuple[int, ...], size: int, images: int = 1, stride: int = 1, tag: str = PLAIN, **fields: Any
) -> dnn.ConvolutionBackwardWeights:
    out, into, kernel = weights[0], weights[1], weights[2]
    pad = kernel // 2
    made = (size + 2 * pad - kernel) // stride + 1
    rest = (made - 1) * stride + kernel - size - pad
    return dnn.ConvolutionBackwardWeights(
        t(images, into, size, size, tag=tag), t(*weights), t(images, out, made, made, tag=tag),
        strides=(stride, stride), padding_l=(pad, pad), padding_r=(rest, rest), **fields,
    )  # fmt: skip


def momentum(weights: dnn.MemoryDesc) -> dnn.Attr:
    """m = m / 2 + g, and as a further value w - m rate, the rate being the second of two numbers."""
    build = Builder(4)
    g, m, w, rate = build.inputs
    moved = 0.5 * m + g
    rates = dnn.MemoryDesc((1, 1, 1, 1), dnn.f32, "abcd", offset0=1)
    tensors = {"m": weights, "w": weights, "rate": rates}
    return dnn.Attr([traced_before(build.finish(moved, w - rate * moved), lambda g, **_: g, tensors)])


def run(pd: dnn.PrimitiveDesc, arrays: dict[str, Any]) -> dict[str, Any]:
    """What a primitive writes."""
    results = {name: np.full(pd.plan.tensors[name].dims, np.nan, np.float32) for name in pd.plan.outputs}
    memories = {name: dnn.Memory.from_array(array) for name, array in {**arrays, **results}.items()}
    for name in ("src", "diff_dst"):
        memories[name] = dnn.reorder(memories[name], pd.plan.tensors[name], pd.engine)
    if "rate_0" in pd.plan.tensors:
        memories["rate_0"] = dnn.Memory(pd.plan.tensors["rate_0"], np.array([np.nan, 0.25], np.float32))
    dnn.Primitive(pd).execute(dnn.Stream(pd.engine), **memories)
    return {name: memories[name].view() for name in results}


def arrays_of(desc: dnn.ConvolutionBackwardWeights) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(tensor.dims).astype(np.float32)
        for name, tensor in (
            ("src", desc.src),
            ("diff_dst", desc.diff_dst),
            ("m_0", desc.diff_weights),
            ("w_0", desc.diff_weights),
        )
    }


PROBLEMS = {
    "3x3": gradient((32, 16, 3, 3), 6, algorithm="direct"),
    "3x3 of images": gradient((48, 16, 3, 3), 4, images=3, tag=LAST, algorithm="direct"),
    "3x3, stride 2": gradient((32, 32, 3, 3), 9, stride=2, tag=BLOCKED),
    "3x3, a vector": gradient((16, 16, 3, 3), 6, algorithm="direct"),
    "1x1": gradient((96, 40, 1, 1), 5, tag=LAST),
    "1x1, blocked": gradient((32, 64, 1, 1), 7, tag=BLOCKED),
    "5x5": gradient((32, 24, 5, 5), 11, tag=LAST),
    "many pixels": gradient((256, 64, 1, 1), 40, tag=BLOCKED),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_bits_are_those_of_two_passes(isa: str, name: str) -> None:
    desc = PROBLEMS[name]
    arrays, without = arrays_of(desc), dnn.primitive_desc(desc, engine=engine(isa))
    g = run(without, {x: arrays[x] for x in ("src", "diff_dst")})["diff_weights"]
    moved = np.float32(0.5) * arrays["m_0"] + g
    wanted = {"diff_weights": moved, "diff_weights_0_0": arrays["w_0"] - np.float32(0.25) * moved}
    for threads in (1, 2, 3):
        pd = dnn.primitive_desc(desc, momentum(desc.diff_weights), engine(isa, threads))
        assert pd.implementation.split(":")[0].endswith(NAME)
        pd.plan.check()
        assert {"m_0", "w_0"} <= {name for name, _ in pd.plan.in_place} or desc.src.tag != BLOCKED
        made = run(pd, arrays)
        assert made.keys() == wanted.keys()
        for result, array in wanted.items():
            np.testing.assert_array_equal(made[result], array, f"{result}, {threads} threads")


def test_other_post_ops_follow_one_another(isa: str) -> None:
    desc = PROBLEMS["1x1"]
    ops: list[Any] = [dnn.Eltwise("abs"), dnn.Binary("mul", desc.diff_weights), dnn.PostOp(lambda x, c: x - c, c=2.0)]
    arrays = arrays_of(desc)
    pd = dnn.primitive_desc(desc, dnn.Attr(ops), engine(isa))
    pd.plan.check()
    assert NAME in pd.implementation
    g = run(dnn.primitive_desc(desc, engine=engine(isa)), {x: arrays[x] for x in ("src", "diff_dst")})["diff_weights"]
    found = run(pd, {x: arrays[x] for x in ("src", "diff_dst")} | {"binary_1": arrays["m_0"]})["diff_weights"]
    np.testing.assert_array_equal(found, np.abs(g) * arrays["m_0"] - np.float32(2))


BY_CHANNEL = dnn.MemoryDesc((32, 1, 1, 1), dnn.f32, "abcd")
REFUSED: dict[str, tuple[dnn.ConvolutionBackwardWeights, Any, str]] = {
    "sum": (PROBLEMS["3x3"], [dnn.Sum()], "a sum after a gradient"),
    "by channel": (PROBLEMS["3x3"], [dnn.Binary("add", BY_CHANNEL)], "binary_0 is .* it must be one number"),
    "panels": (gradient((20, 16, 1, 1), 5), ["abs"], "no whole panels"),
    "few inputs": (gradient((32, 3, 3, 3), 9), ["abs"], "no whole panels"),
    "phases": (gradient((32, 16, 1, 1), 56, images=4), ["abs"], "several phases"),
    "pixels": (gradient((32, 16, 1, 1), 8, stride=2), ["abs"], "copied first"),
    "winograd": (gradient((32, 16, 3, 3), 6, algorithm="winograd"), ["abs"], "Winograd"),
    "format": (
        PROBLEMS["3x3"].with_formats({"diff_weights": t(32, 16, 3, 3, tag="acdb")}),
        ["abs"],
        "plain",
    ),
    "bias": (gradient((32, 16, 1, 1), 5, diff_bias=t(32)), ["abs"], "diff_bias"),
}


def test_one_input_channel_is_summed_as_before(isa: str) -> None:
    """Its panels have blocks of one channel, too."""
    desc = gradient((32, 1, 3, 3), 6)
    pd = dnn.primitive_desc(desc, engine=engine(isa))
    pd.plan.check()
    arrays = {x: np.rint(4 * array) for x, array in arrays_of(desc).items() if x in ("src", "diff_dst")}
    found, padded = run(pd, arrays)["diff_weights"], np.pad(arrays["src"][0, 0], 1)
    for r, s in np.ndindex(3, 3):
        window = padded[r : r + 6, s : s + 6]
        np.testing.assert_array_equal(found[:, 0, r, s], (arrays["diff_dst"][0] * window).sum((1, 2)))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_taken_says_why(name: str) -> None:
    desc, ops, why = REFUSED[name]
    with pytest.raises(dnn.Unimplemented, match=why):
        dnn.primitive_desc(desc, dnn.Attr(ops), engine("avx2"))


def test_what_stays_in_l2_has_a_pass_of_its_own() -> None:
    large = dnn.Engine(isa="avx2", threads=1, l2_bytes=1 << 20)
    with pytest.raises(dnn.Unimplemented, match="stays in L2"):
        dnn.primitive_desc(PROBLEMS["3x3"], dnn.Attr(["abs"]), large)


def test_other_attributes_are_refused() -> None:
    with pytest.raises(dnn.Unimplemented, match="without other attributes"):
        dnn.primitive_desc(PROBLEMS["1x1"], dnn.Attr(["abs"], denormals="flush"), engine("avx2"))


def test_tiles_ask_for_what_post_ops_read(isa: str) -> None:
    """Tiles of one position prefetch rows of both tensors."""
    desc = PROBLEMS["1x1, blocked"]
    plan = dnn.primitive_desc(desc, momentum(desc.diff_weights), engine(isa)).plan
    kernels = [getattr(spec, "kernel", spec) for spec in plan.specs]
    assert any(getattr(spec, "prefetch_lines", 0) for spec in kernels)
    *_, phase = plan.phases
    assert {"m_0", "w_0"} <= {view.buffer for view in phase.arguments}
    assert plan.per_part == ("sums of tiles", "gradient")
