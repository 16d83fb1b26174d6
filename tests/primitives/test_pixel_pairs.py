"""Gradients of weights of bf16 with few input channels, by pairs of pixels: definition, threads, edges, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.convolution_backward import weights_pairs
from asmdnn.types import IsaName
from tests.primitives import conv_gradients as reference
from tests.primitives import test_conv_backward_weights as of_weights
from tests.primitives.conv_case import MACHINE
from tests.primitives.conv_gradients import described, problem_of
from tests.primitives.test_half_gradients import compare, halved, is_image

LEVEL: IsaName = "avx512_core_bf16"
pytestmark = pytest.mark.isa(LEVEL)
# Channels, widths and strides; half a pair at the end and none; padding on one side, more of it than the kernel has.
PROBLEMS = (
    "mb2ic3ih15oc64kh7sh2ph3", "mb1ic1ih9oc16kh5ph2", "mb3ic4ih8iw11oc40kh3kw3ph1pw1", "mb2ic2ih7iw12oc48kh3kw2sh2sw3",
    "mb1ic3ih10iw17oc20kh4kw4sh4sw4", "mb2ic1ih6iw20oc33kh3kw3dh1dw2ph2pw3", "mb9ic3iw40oc96kw5pw2sw3",
    "mb1ic2iw3000oc8kw4sw2pw1", "mb2ic3id3ih5iw7oc9kd2kh3kw3pd1ph1pw1", "mb2ic3ih5iw3oc16kh3kw3",
    "mb5ic1ih2iw1oc5kh1kw1", "mb1ic3ih4iw5oc16oh6ow9kh3kw3ph3pw4", "deconv:mb2ic24ih5oc3kh3sh2ph1",
    "mb1ic4ih64iw63oc112kh3ph1pw0kw3",
)  # fmt: skip


@pytest.mark.parametrize("text", PROBLEMS)
def test_definition(text: str) -> None:
    """Of integers that are exact, on 1 and 3 threads, in all formats."""
    for tag in ("any", "nhwc", "nchw") if is_image(text) else ("any",):
        for bias in (False, True):
            desc, arrays, wanted = of_weights.gradient(text, tag, tag, bias=bias)
            for wide in ((), ("diff_weights", "diff_bias")):
                assert "pixel_pairs" in compare(halved(desc, dnn.bf16, *wide), arrays, wanted, LEVEL)


def planned(text: str, threads: int = 1) -> dnn.PrimitiveDesc:
    """With diff_weights of f32."""
    desc = described(dnn.ConvolutionBackwardWeights, problem_of(text), {"weights": "oihw"})
    engine = dnn.Engine(isa=LEVEL, machine=MACHINE, threads=threads)
    return dnn.primitive_desc(halved(desc, dnn.bf16, "diff_weights"), engine=engine)


def weights_of(pd: dnn.PrimitiveDesc, arrays: Any) -> Any:
    """diff_weights; arrays: src and diff_dst."""
    tensors = pd.plan.tensors
    given = {name: dnn.Memory.from_numpy(array, tensors[name]) for name, array in arrays.items()}
    result = dnn.Memory(tensors["diff_weights"])
    dnn.Primitive(pd).execute(src=given["src"], diff_dst=given["diff_dst"], diff_weights=result)
    return result.numpy()


@pytest.mark.parametrize("text", ["mb4ic3ih31oc64kh7sh2ph3", "mb2ic1ih40oc16kh3ph1", "mb2ic4ih33oc48kh3sh3"])
def test_sums_of_random_numbers(text: str) -> None:
    """Within what n roundings of f32 can do to a sum of n products of bf16; the same bits on 1, 2 and 3 threads."""
    p, random = problem_of(text), np.random.default_rng(7)
    dims = {"src": p.src_dims, "diff_dst": p.dst_dims}
    arrays = {name: encoded(random.standard_normal(size).astype(np.float32), dnn.bf16) for name, size in dims.items()}
    x, dy = (decoded(array, dnn.bf16).astype(np.float64) for array in arrays.values())
    found = [weights_of(planned(text, threads=threads), arrays) for threads in (1, 2, 3)]
    roundings = 2 * dy.size // dy.shape[1] * 2.0**-24
    bound = roundings * reference.of_weights(p, np.abs(x), np.abs(dy))
    assert (np.abs(found[0] - reference.of_weights(p, x, dy)) <= bound).all()
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_what_lies_beside_the_last_window_is_not_multiplied() -> None:
    """Half a pair is left of 5 columns: the other half would read column 11, which no window has."""
    text = "mb1ic3ih12oc16kh3sh2"
    p = problem_of(text)
    x, dy = reference.integers(1, p.src_dims), reference.integers(2, p.dst_dims)
    wanted = reference.of_weights(p, x, dy)
    x[..., 11] = np.inf
    arrays = {"src": encoded(x, dnn.bf16), "diff_dst": encoded(dy, dnn.bf16)}
    assert np.array_equal(weights_of(planned(text), arrays), wanted)


def refusal(text: str, dtype: dnn.DataType = dnn.bf16, isa: IsaName = LEVEL) -> str:
    desc = described(dnn.ConvolutionBackwardWeights, problem_of(text), {})
    engine = dnn.Engine(isa=isa, machine=MACHINE)
    (answer,) = weights_pairs.plans(halved(desc, dtype), NO_ATTR, engine)
    assert not isinstance(answer, Plan), answer
    return str(answer)


def test_refusals() -> None:
    assert "5 input channels in 1 groups, it takes up to 4 in one" in refusal("mb1ic5ih6oc16kh3")
    assert "2 input channels in 2 groups" in refusal("g2mb1ic2ih6oc32kh3")
    assert "does not multiply pairs of f16" in refusal("mb1ic3ih6oc16kh3", dnn.f16)
    assert "does not multiply pairs of bf16" in refusal("mb1ic3ih6oc16kh3", isa="avx512_core")
    assert "there are no elements" in refusal("mb0ic3ih6oc16kh3")
    assert "rows of src are too long" in refusal("mb1ic1ih1iw9000000oc16kh1kw1")


def test_of_f32_there_is_nothing_to_say() -> None:
    desc = described(dnn.ConvolutionBackwardWeights, problem_of("mb1ic3ih6oc16kh3"), {})
    assert not [*weights_pairs.plans(desc, NO_ATTR, dnn.Engine(isa=LEVEL, machine=MACHINE))]


def test_formats_that_are_any() -> None:
    """Pairs of pixels in panels, and with a bias vectors of channels, whose sums are fast."""
    text = "mb1ic3ih16oc64kh3ph1"
    for channels, block in ((64, 64), (128, 64), (96, 48), (40, 48), (160, 32)):
        assert planned(text.replace("64", str(channels))).plan.tensors["diff_dst"].tag == f"acBD{block}b2d"
    assert planned("mb1ic1ih400oc64kh1").plan.tensors["diff_dst"].tag == "acBD32b2d"  # a large image
    desc = halved(described(dnn.ConvolutionBackwardWeights, problem_of(text), {"bias": "a"}), dnn.bf16)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=LEVEL, machine=MACHINE))
    assert pd.plan.tensors["diff_dst"].tag == "aBcd16b"
    assert "pixel_pairs" in pd.implementation
