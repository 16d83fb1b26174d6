"""What softmax has beside tests/conformance: masks and scales of scores, extremes, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.softmax import softmax, softmax_error

INFERENCE = dnn.PropKind.forward_inference
ALGS = ("accurate", "log")


def numbers(*dims: int, seed: int = 0, size: float = 4.0) -> Any:
    return np.random.default_rng(seed).uniform(-size, size, dims).astype(np.float32)


def described(alg: str, desc: dnn.MemoryDesc, axis: int, **more: Any) -> dnn.SoftmaxForward:
    return dnn.SoftmaxForward(INFERENCE, alg, desc, desc, axis, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize(("dims", "axis"), [((3, 4, 60), 2), ((3, 4, 12), 2), ((3, 12, 20), 1)])
@pytest.mark.parametrize("masked", [(3, 1, 1), (1, 1, None), (3, 4, None), (1, None, 1)], ids=str)
def test_mask_scale_and_post_ops(
    isa: str, alg: str, dims: tuple[int, ...], axis: int, masked: tuple[int | None, ...]
) -> None:
    mask_dims = tuple(m if m in (1, n) else n for m, n in zip(masked, dims, strict=True))
    x, mask, factor = numbers(*dims), numbers(*mask_dims, seed=1), numbers(*dims, seed=2)
    result = dnn.ops.softmax if alg == "accurate" else dnn.ops.log_softmax
    chain = [dnn.PostOp(lambda x, factor: x * factor, factor=factor)]
    scores, log = np.float32(0.25) * x + mask, alg == "log"
    wanted, bound = softmax(scores.astype(np.float64), axis, log), softmax_error(scores, axis, log)
    found = result(x, axis, mask=mask, scale=0.25, post_ops=chain, engine=dnn.Engine(isa=isa))
    assert (np.abs(found - wanted * factor) <= 8 * bound * np.abs(factor) + 1e-6).all()


def test_extremes(isa: str) -> None:
    """Masked elements are 0; where everything is masked, or NaN or infinite, nothing is a number."""
    engine = dnn.Engine(isa=isa)
    for count in (6, 100):
        x = np.zeros((5, count), np.float32)
        x[0, 2:], x[1], x[2, 1], x[3, 1], x[4, 3] = -np.inf, -np.inf, np.nan, np.inf, 1e30
        found = dnn.ops.softmax(x, engine=engine)
        assert np.array_equal(found[0], [0.5, 0.5, *[0.0] * (count - 2)])
        assert np.isnan(found[1:4]).all()
        assert np.array_equal(found[4], np.arange(count) == 3)
        assert np.array_equal(
            dnn.ops.log_softmax(x[4:], engine=engine)[0], np.where(np.arange(count) == 3, 0, -x[4, 3])
        )


def test_a_result_in_the_place_of_its_array(isa: str) -> None:
    x, engine = numbers(3, 21, 50), dnn.Engine(isa=isa)
    out = x.copy()
    assert dnn.ops.softmax(out, 1, out=out, engine=engine) is out
    assert np.array_equal(out, dnn.ops.softmax(x, 1, engine=engine))


def test_scales_are_passed_alike_for_no_elements() -> None:
    """As they are elsewhere, not as kernels would read them."""
    some, none = (
        dnn.primitive_desc(
            described("accurate", dnn.MemoryDesc((rows, 5), dnn.f32, "ab"), 1), dnn.Attr(scales={"src": 0, "dst": 0})
        ).plan.tensors
        for rows in (3, 0)
    )
    assert [none[name] for name in none if name.endswith("_scales")] == [some["src_scales"], some["dst_scales"]]


def test_bad_input() -> None:
    desc = dnn.MemoryDesc((2, 3), dnn.f32, "ab")
    other = dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    for arguments, says in (
        ((INFERENCE, "accurate", desc, other, 1), "dst has dims"),
        ((INFERENCE, "accurate", desc, desc, 2), "axis is 2, src has 2 dims: use -2 to 1"),
        ((INFERENCE, "accurate", desc, desc, True), "axis must be an integer"),
        ((INFERENCE, "exact", desc, desc, 1), "must be one of accurate, log"),
        ((INFERENCE, "accurate", desc, None, 1), "dst must be a MemoryDesc"),
        ((INFERENCE, "accurate", desc, desc, 1, other), "mask has dims"),
        ((INFERENCE, "accurate", desc, desc, 1, None, float("nan")), "scale must be a finite"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.SoftmaxForward(*arguments)
    with pytest.raises(dnn.Unimplemented, match="post-op sum is not implemented"):
        dnn.primitive_desc(described("accurate", desc, 1), dnn.Attr([dnn.Sum()]))


def test_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    x = numbers(17, 130)
    wanted = torch.softmax(torch.from_numpy(x), -1).numpy()
    np.testing.assert_allclose(dnn.ops.softmax(x, engine=dnn.Engine(isa=isa)), wanted, 1e-5)
