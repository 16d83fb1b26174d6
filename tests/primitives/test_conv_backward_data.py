"""Gradients of the source of convolutions and deconvolutions: definition, adjoint, threads, pages, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives import conv_gradients as reference
from tests.primitives.conv_case import MACHINE
from tests.primitives.conv_gradients import described, integers, is_deconvolution, problem_of
from tests.primitives.gradient_case import check, proved, run

# What takes it without its ISA level, the problem, and the layouts of src, dst and weights.
LINES = """
direct             mb2ic20ih5iw6oc24kh3kw3ph1pw1                        any  any  any
direct             mb2ic19ih7oc17kh3sh2ph1                        nhwc nhwc any
direct             mb1ic12ih8oc9kh1sh2                            any  any  any
direct             mb1ic9ih6oc33kh1                               any  any  any
direct             mb1ic9iw11oc5kw3dw1pw2                         any  any  any
direct             mb1ic9id3ih4iw5oc9kd2kh3kw2sd2ph1pd0pw0              any  any  any
direct             g2mb1ic24ih6oc24kh3ph1                         any  any  any
few_outputs        mb1ic3ih9oc24kh5sh2ph2                         any  any  any
depthwise          g19mb2ic19ih7oc19kh3sh2ph1                     any  any  any
depthwise          g16mb1ic16ih6oc16kh3ph1                        nhwc nhwc any
grouped            g8mb1ic32ih6oc32kh3sh2ph1                      any  any  any
planes+depthwise   g19mb2ic19ih7oc38kh3sh2ph1                     any  any  any
planes+depthwise   g16mb1ic16ih6iw9oc48kh3kw5ph1pw0               nchw nchw goihw
planes+depthwise   g5mb2ic5iw9oc40kw3sw3                          nwc  nwc  any
planes+depthwise   g8mb1ic8ih6oc16kh1sh2                          nhwc any  any
groups+tiles       g5mb2ic5ih6oc15kh1                             any  any  any
groups+tiles       g3mb2ic12ih6oc15kh1                            nchw nchw goihw
planes+depthwise   deconv:g9mb2ic9ih5oc18kh3sh2ph1                any  any  any
reorder+direct     mb1ic20ih6oc18kh3ph1                           nchw nchw any
pack+direct        mb1ic18ih6oc16kh3ph1                           any  any  oihw
direct             deconv:mb2ic20ih5oc24kh3sh2ph1                 any  any  any
direct             deconv:mb1ic9iw6oc9kw3sw2dw1                   any  any  any
depthwise          deconv:g16mb1ic16ih5oc16kh3sh2ph1              any  any  any
few_outputs        deconv:mb1ic3ih5oc33kh3ph1                     any  any  any
pack+direct        deconv:mb1ic18ih5oc16kh2sh2                    any  any  oihw
""".strip()
CASES = [line.split() for line in LINES.splitlines()]
ALL = pytest.mark.parametrize(("name", "text", "src", "dst", "weights"), CASES)


def gradient(text: str, src: str = "any", dst: str = "any", weights: str = "any", **more: Any) -> Any:
    """(description, inputs, results)."""
    p = problem_of(text)
    form = dnn.DeconvolutionBackwardData if is_deconvolution(p) else dnn.ConvolutionBackwardData
    arrays = {"weights": integers(1, p.weights_dims), "diff_dst": integers(2, p.dst_dims)}
    desc = described(form, p, {"src": src, "dst": dst, "weights": weights}, **more)
    return desc, arrays, {"diff_src": reference.of_data(p, arrays["weights"], arrays["diff_dst"])}


@ALL
def test_results(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    pd = check(*gradient(text, src, dst, weights), isa)
    assert pd.implementation == f"{name}:{isa}"
    assert [*pd.plan.tensors] == ["diff_src", "weights", "diff_dst"]


@ALL
def test_adjoint(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    """<forward(x), y> = <x, backward(y)>, exactly, and without a reference."""
    p = problem_of(text)
    desc, arrays, _ = gradient(text, src, dst, weights)
    form = dnn.DeconvolutionForward if is_deconvolution(p) else dnn.ConvolutionForward
    x = integers(3, p.src_dims)
    forward = run(proved(described(form, p, {"src": src, "dst": dst}), isa), {"src": x, "weights": arrays["weights"]})
    back = run(proved(desc, isa), arrays)
    assert np.vdot(forward["dst"].astype(float), arrays["diff_dst"]) == np.vdot(x, back["diff_src"].astype(float))


WINOGRAD = [
    ("winograd", "mb2ic24ih9iw10oc20kh3kw3ph1pw1", "any", "any"),
    ("winograd", "mb1ic20ih6oc9kh3ph0", "nhwc", "any"),
    ("winograd", "g2mb1ic16ih6oc24kh3ph2", "any", "any"),
    ("pack+winograd", "mb1ic9ih6oc20kh3ph1", "any", "oihw"),
    ("pack+reorder+winograd", "mb1ic9ih6oc20kh3ph1", "nchw", "ohwi"),
]


@pytest.mark.parametrize(("name", "text", "images", "weights"), WINOGRAD)
def test_winograd(isa: str, name: str, text: str, images: str, weights: str) -> None:
    """Weights of any format: transformed when they are reordered, or by a phase of the plan."""
    desc, arrays, wanted = gradient(text, images, images, weights, algorithm="winograd")
    pd = check(desc, arrays, wanted, isa, 2e-3)
    assert pd.implementation == f"{name}:{isa}"
    if weights == "any":
        plain = dnn.Memory.from_array(arrays["weights"])
        memory = dnn.Memory(pd.weights_desc)
        dnn.reorder(plain, memory)
        assert np.allclose(memory.array, dnn.Memory.from_numpy(arrays["weights"], pd.weights_desc).array, atol=1e-5)


def test_weights_for_the_other_pass_are_refused() -> None:
    engine = dnn.Engine(isa="avx2", threads=1)
    desc, _, _ = gradient("mb1ic16ih6oc16kh3ph1", algorithm="winograd")
    back = dnn.primitive_desc(desc, engine=engine).weights_desc
    assert back is not None and "turned" in str(back.tag)
    forward = described(dnn.ConvolutionForward, problem_of("mb1ic16ih6oc16kh3ph1"), {}, algorithm="winograd")
    ours = dnn.primitive_desc(forward, engine=engine).weights_desc
    for other in (desc.with_formats({"weights": ours}), forward.with_formats({"weights": back})):
        with pytest.raises(dnn.Unimplemented):
            dnn.primitive_desc(other, engine=engine)
    assert dnn.primitive_desc(desc.with_formats({"weights": back}), engine=engine).weights_desc == back


@pytest.mark.parametrize("text", ["mb2ic8iw2oc9ow0kw3", "mb0ic8iw5oc9kw3", "mb1ic8iw0oc9ow1kw3pw2"])
def test_nothing(isa: str, text: str) -> None:
    """Images without pixels, and none: a gradient that nothing reaches is 0."""
    axis = {"mb2ic8iw2oc9ow0kw3": (2, 2, 0, 0), "mb0ic8iw5oc9kw3": (0, 5, 3, 0), "mb1ic8iw0oc9ow1kw3pw2": (1, 0, 2, 2)}
    mb, i, o, pad = axis[text]
    tensors = [dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((mb, 8, i), (9, 8, 3), (mb, 9, o))]
    desc = dnn.ConvolutionBackwardData(*tensors, padding_l=(pad,), padding_r=(pad,))
    arrays = {"weights": integers(1, (9, 8, 3)), "diff_dst": integers(2, (mb, 9, o))}
    check(desc, arrays, {"diff_src": np.zeros((mb, 8, i))}, isa)


def test_of_a_forward_pass() -> None:
    p = problem_of("mb1ic20ih6oc24kh3sh2ph1")
    engine = dnn.Engine(isa="avx2", threads=1)
    forward = dnn.primitive_desc(described(dnn.ConvolutionForward, p, {"src": "nhwc"}), engine=engine)
    desc = dnn.ConvolutionBackwardData.of(forward)
    assert desc == described(dnn.ConvolutionBackwardData, p, {"src": "nhwc"}, algorithm="direct").with_formats(
        {"diff_dst": forward.dst_desc}
    )
    assert dnn.ConvolutionBackwardData.of(forward, diff_src="any").diff_src.is_any
    with pytest.raises(dnn.InvalidArguments, match="forward must be a primitive_desc of a DeconvolutionForward"):
        dnn.DeconvolutionBackwardData.of(forward)
    with pytest.raises(dnn.InvalidArguments, match="diff_bias is no tensor of a ConvolutionBackwardData"):
        dnn.ConvolutionBackwardData.of(forward, diff_bias="a")


OF_FORWARD = {
    "Convolution": (dnn.ConvolutionBackwardData, dnn.ConvolutionBackwardWeights),
    "Deconvolution": (dnn.DeconvolutionBackwardData, dnn.DeconvolutionBackwardWeights),
}


@pytest.mark.parametrize("kind", OF_FORWARD)
def test_hints_that_do_not_fit(kind: str) -> None:
    """What is no planned forward pass of the same kind, and formats that its tensors cannot have."""
    engine, ends = dnn.Engine(isa="avx2", threads=1), ((1, 16, 6, 6), (8, 16, 3, 3), (1, 8, 4, 4))
    forms: dict[str, Any] = {
        "Convolution": dnn.ConvolutionForward(*(dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ends)),
        "Deconvolution": dnn.DeconvolutionForward(
            *(dnn.MemoryDesc(dims, dnn.f32, "any") for dims in (ends[2], (16, 8, 3, 3), ends[0]))
        ),
    }
    planned = {name: dnn.primitive_desc(form, engine=engine) for name, form in forms.items()}
    (other,) = forms.keys() - {kind}
    for gradient in OF_FORWARD[kind]:
        for hint in (None, forms[kind], planned[other], dnn.primitive_desc(gradient.of(planned[kind]), engine=engine)):
            with pytest.raises(dnn.InvalidArguments, match=f"must be a primitive_desc of a {kind}Forward, not "):
                gradient.of(hint)
        for tag in ("abc", "nhwc8", 3):
            with pytest.raises(dnn.InvalidArguments, match=r"diff_dst|tag|format") as error:
                gradient.of(planned[kind], diff_dst=tag)
            assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"diff_dst": (1, 4, 9, 10)}, "ConvolutionBackwardData, seen from its forward pass: dst's height is 9"),
        ({"weights": (4, 7, 3, 3)}, "weights has 7 input channels, src has 8"),
        ({"strides": (0, 1)}, "strides must be two integers from 1"),
        ({"algorithm": "fft"}, "algorithm 'fft' is not one of auto, direct, winograd"),
        ({"diff_src": None}, "diff_src must be a MemoryDesc, not None"),
    ],
)
def test_what_does_not_fit(changed: dict[str, Any], message: str) -> None:
    dims = {"diff_src": (1, 8, 10, 10), "weights": (4, 8, 3, 3), "diff_dst": (1, 4, 10, 10)}
    tensors = {name: dnn.MemoryDesc(changed.get(name, size) or (), dnn.f32, "any") if changed.get(name, size) else None
               for name, size in dims.items()}  # fmt: skip
    window = {"padding_l": (1, 1), "padding_r": (1, 1)} | {n: v for n, v in changed.items() if n not in dims}
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.ConvolutionBackwardData(**tensors, **window)  # type: ignore[arg-type]


BEHIND = [
    ("direct", "mb2ic20ih5iw6oc24kh3kw3ph1pw1", "any", "direct"),
    ("pack+direct", "mb1ic18ih6oc16kh3sh2ph1", "oihw", "direct"),
    ("depthwise", "g19mb2ic19ih7oc19kh3sh2ph1", "any", "direct"),
    ("depthwise", "g16mb1ic16ih6oc16kh3ph1", "any", "direct"),
    ("winograd", "mb2ic24ih9iw10oc20kh3kw3ph1pw1", "any", "winograd"),
    ("pack+winograd", "mb1ic9ih6oc20kh3ph1", "oihw", "winograd"),
]


@pytest.mark.parametrize(("name", "text", "weights", "algorithm"), BEHIND)
def test_post_ops(isa: str, name: str, text: str, weights: str, algorithm: Any) -> None:
    """As a training step has them: the gradient of another reader is added, and a relu's mask applied."""
    desc, arrays, wanted = gradient(text, weights=weights, algorithm=algorithm)
    dims = wanted["diff_src"].shape
    others = {f"binary_{i}": integers(5 + i, dims) for i in range(2)}
    ops = [dnn.Binary(word, dnn.MemoryDesc(dims, dnn.f32, "any")) for word in ("add", "mul")]
    pd = dnn.primitive_desc(desc, dnn.Attr(ops), dnn.Engine(isa=isa, threads=1, machine=MACHINE))
    pd.plan.check()
    assert pd.implementation == f"{name}:{isa}"
    expected = (wanted["diff_src"] + others["binary_0"]) * others["binary_1"]
    found = run(pd, arrays | others)["diff_src"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * abs(expected).max() * (algorithm == "winograd"))


def test_scales_are_refused() -> None:
    desc, _, _ = gradient("mb1ic8ih4oc8kh3ph1")
    with pytest.raises(dnn.Unimplemented, match="a gradient has no scales or zero points"):
        dnn.primitive_desc(desc, dnn.Attr(scales={"weights": 0}))


@pytest.mark.parametrize("text", ["mb1ic8ih4oc8kh3ph1", "mb1ic8ih4oc8kh1", "deconv:mb1ic8ih4oc8kh3ph1"])
def test_a_depthwise_convolution_after_a_gradient_is_refused(text: str) -> None:
    desc, _, _ = gradient(text)
    weights = dnn.MemoryDesc((8, 1, 1, 3, 3), dnn.f32, "any")
    with pytest.raises(dnn.Unimplemented, match="a gradient has no depthwise post-op"):
        dnn.primitive_desc(desc, dnn.Attr([dnn.Depthwise(weights, padding_l=(1, 1), padding_r=(1, 1))]))
