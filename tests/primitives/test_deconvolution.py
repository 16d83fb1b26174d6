"""Deconvolutions: descriptions, results in every format, attributes, ranges of channels, threads, edges of buffers."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.deconv_problem import parse_deconv_problem
from asmdnn.bench.problems import ConvProblem
from asmdnn.bench.taps import sums_of
from asmdnn.generators.dot.conv_shape import DST
from tests.primitives.conv_case import MACHINE, layout
from tests.primitives.tensors import assert_within, holding, read
from tests.primitives.test_conv_phases import SMALL_L2_BYTES
from tests.support.plans import proved_desc
from tests.support.tuning import tuned

# What takes it without its ISA level, the problem, and the layouts of src, dst and weights.
LINES = """
direct               mb2ic16ih5iw6oc24kh2kw2sh2sw2            any  any  any
direct               mb1ic8ih4oc19kh4sh2ph1                   any  nhwc any
direct               mb1ic12ih5oc9oh10kh3sh2ph1               nhwc any  any
direct               mb2ic3iw9oc5kw5sw4pw2dw2                 any  any  any
direct               mb1ic7id2ih3iw4oc9kd3kh2kw3sd2sh1sw2     any  any  any
direct               g2mb1ic24ih4oc24kh3sh3                   any  any  any
direct               g6mb2ic6ih4oc12kh4sh2ph1                 nhwc nhwc any
direct               mb1ic8ih3oc8kh1sh3                       any  any  any
direct               mb1ic8ih4iw5oc8kh2kw3sh1sw2dh1dw1        any  any  any
reorder+direct       mb1ic20ih4oc18kh3sh2ph1                  nchw nchw any
depthwise            g19mb2ic19ih5iw6oc19kh4kw4sh2sw2ph1pw1       any  any  any
depthwise            g24mb1ic24ih4iw5oc24kh3kw5sh2sw3ph1pw1dh0dw1 nhwc nhwc any
depthwise            g12mb1ic12iw9oc12kw8sw4pw2                   any  any  any
depthwise            g16mb1ic16id3ih4iw3oc16kd3kh4kw2sd2sh2sw1pd1ph1pw0  any  any  any
depthwise            g8mb1ic8ih2oc8kh24sh8ph8                     any  nhwc any
depthwise            g16mb1ic16ih7oc16kh3ph1                      any  any  any
grouped              g8mb2ic32ih5oc32kh3sh2ph1                    any  any  any
grouped              g2mb1ic16ih4oc16kh3sh3                   any  any  any
reorder+depthwise    g16mb1ic16ih4oc16kh4sh2ph1                   nchw nchw any
pack+depthwise       g16mb1ic16ih4oc16kh4sh2ph1                   nhwc nhwc goihw
few_outputs          mb2ic24ih5iw6oc1kh2kw2sh2sw2             any  any  any
few_outputs          mb1ic37ih5oc3kh4sh2ph1                   nhwc any  any
few_outputs          mb1ic64ih4oc1oh7kh3sh2ph1                any  nchw any
few_outputs          mb1ic40ih4iw5oc2kh3kw2sh1sw3dh1dw1ph2    any  any  any
few_outputs          mb1ic24iw9oc1kw5sw3pw1dw2                any  any  any
few_outputs          mb1ic16id2ih3iw4oc1kd3kh2kw3sd2sh1sw2    any  any  any
few_outputs          mb1ic32ih3oc1kh1sh3                      any  any  any
reorder+few_outputs  mb1ic64ih4oc2kh3sh2ph1                   nhwc nhwc any
pack+few_outputs     mb1ic64ih4oc2kh3sh2ph1                   nhwc nchw iohw
pack+direct          mb1ic16ih4oc16kh4sh2ph1                  nhwc nhwc oihw
pack+reorder+direct  mb1ic20ih4oc16kh2sh2                     nchw nchw iohw
""".strip()
CASES = [line.split() for line in LINES.splitlines()]
Arrays = dict[str, Any]


def described(problem: ConvProblem, src: str, dst: str, weights: str, bias: bool = True) -> dnn.DeconvolutionForward:
    return dnn.DeconvolutionForward(
        src=layout(problem.src_dims, src),
        weights=layout(problem.weights_dims, weights),
        dst=layout(problem.dst_dims, dst),
        bias=dnn.MemoryDesc((problem.oc,), dnn.f32, "a") if bias else None,
        strides=problem.strides,
        dilations=problem.dilations,
        padding_l=problem.padding_l,
        padding_r=problem.padding_r,
    )


def proved(desc: dnn.DeconvolutionForward, isa: str, attr: dnn.Attr | None = None, **engine: Any) -> dnn.PrimitiveDesc:
    return proved_desc(desc, attr or dnn.Attr(), dnn.Engine(isa=isa, machine=MACHINE, **{"threads": 1, **engine}))


def data_of(problem: ConvProblem) -> Arrays:
    random = np.random.default_rng(3)
    dims = {"src": problem.src_dims, "weights": problem.weights_dims, "bias": (problem.oc,)}
    return {name: random.integers(-9, 9, size, endpoint=True).astype(np.float32) for name, size in dims.items()}


def answer(problem: ConvProblem, data: Arrays) -> Any:
    sums = sums_of(problem, data["src"].astype(np.float64), data["weights"].astype(np.float64))
    return sums + data["bias"].reshape(-1, *[1] * len(problem.axes))


def run(pd: dnn.PrimitiveDesc, arrays: Arrays) -> Any:
    memories = {name: holding(desc, arrays.get(name)) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    return read(memories["dst"])


@pytest.mark.parametrize(("name", "text", "src", "dst", "weights"), CASES)
def test_results(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    problem = parse_deconv_problem(text)
    pd = proved(described(problem, src, dst, weights), isa)
    assert pd.implementation == f"{name}:{isa}"
    data = data_of(problem)
    assert np.array_equal(run(pd, data), answer(problem, data))


@pytest.mark.parametrize("formats", [("any", "any"), ("nhwc", "nhwc"), ("nchw", "nchw")])
@pytest.mark.parametrize(
    "text", ["mb2ic9ih4iw5oc11kh3kw4sh2sw2ph1pw1", "g2mb1ic8ih4oc12kh2sh2", "mb1ic40ih4iw5oc3kh3kw4sh2sw2ph1pw1"]
)
def test_attributes(isa: str, text: str, formats: tuple[str, str]) -> None:
    """Operands of every broadcast are read where each part's pixels lie in dst; a sum reads what dst held."""
    problem = parse_deconv_problem(text)
    dims, random = problem.dst_dims, np.random.default_rng(5)
    shapes = [dims, (1, dims[1], 1, 1), (dims[0], 1, *dims[2:]), (1, 1, 1, dims[3]), (1, 1, 1, 1)]
    tensors = [dnn.MemoryDesc(shape, dnn.f32, "abcd") for shape in shapes]
    words = ("add", "mul", "max", "add", "mul")
    mask = 3 if problem.groups > 1 else 1
    ops = [dnn.Sum(0.5), *(dnn.Binary(word, tensor) for word, tensor in zip(words, tensors, strict=True))]
    pd = proved(described(problem, *formats, "any"), isa, dnn.Attr(ops, scales={"weights": mask}))
    arrays = data_of(problem) | {f"binary_{i}": random.random(shape, np.float32) for i, shape in enumerate(shapes, 1)}
    arrays |= {"weights_scales": random.random(problem.oc, np.float32), "dst": random.random(dims, np.float32)}
    unbiased = answer(problem, {**arrays, "bias": np.zeros(problem.oc)})
    x = unbiased * arrays["weights_scales"].reshape(-1, 1, 1) + arrays["bias"].reshape(-1, 1, 1) + 0.5 * arrays["dst"]
    x = np.maximum((x + arrays["binary_1"]) * arrays["binary_2"], arrays["binary_3"]) + arrays["binary_4"]
    assert_within(run(pd, arrays), x * arrays["binary_5"], 1e-3)


@pytest.mark.parametrize("formats", [("any", "any"), ("nhwc", "nhwc")])
def test_attributes_of_depthwise(isa: str, formats: tuple[str, str]) -> None:
    """A sum and operands of channels are read by rows of parts; an operand that has pixels by a pass after them."""
    problem = parse_deconv_problem("g19mb2ic19ih4iw5oc19kh3kw4sh2sw2ph1pw1")
    dims, random = problem.dst_dims, np.random.default_rng(5)
    factors = dnn.MemoryDesc((1, dims[1], 1, 1), dnn.f32, "abcd")
    desc, arrays = described(problem, *formats, "any"), data_of(problem)
    arrays |= {"dst": random.random(dims, np.float32), "binary_1": random.random(factors.dims, np.float32)}
    pd = proved(desc, isa, dnn.Attr([dnn.Sum(0.5), dnn.Binary("mul", factors)]))
    assert pd.implementation == f"depthwise:{isa}"
    assert_within(run(pd, arrays), (answer(problem, arrays) + 0.5 * arrays["dst"]) * arrays["binary_1"], 1e-3)
    pixels = dnn.Binary("mul", dnn.MemoryDesc(dims, dnn.f32, "any"))
    arrays = data_of(problem) | {"binary_0": random.random(dims, np.float32)}
    pd = proved(desc, isa, dnn.Attr([pixels, dnn.Eltwise("relu")]))
    assert pd.implementation == f"depthwise:{isa}"
    wanted = np.maximum(answer(problem, arrays) * arrays["binary_0"], 0)
    assert_within(run(pd, arrays), wanted, 1e-3)


def test_ranges_of_channels_and_threads(isa: str) -> None:
    problem = parse_deconv_problem("mb3ic64ih6oc40kh4sh2ph1")
    desc, data, results = described(problem, "any", "any", "any"), data_of(problem), set()
    for threads in (1, 2, 5):
        pd = proved(desc, isa, l2_bytes=SMALL_L2_BYTES, threads=threads)
        assert sum(phase.continues for phase in pd.plan.phases) >= 1
        results.add(run(pd, data).tobytes())
    assert results == {np.float32(answer(problem, data)).tobytes()}


@pytest.mark.parametrize("text", ["mb3ic40ih9oc3kh4sh2ph1", "g40mb3ic40ih9oc40kh4sh2ph1"])
def test_rows_few_outputs_and_threads(isa: str, text: str) -> None:
    problem = parse_deconv_problem(text)
    desc, data = described(problem, "any", "any", "any"), data_of(problem)
    results = {run(proved(desc, isa, threads=threads), data).tobytes() for threads in (1, 2, 5)}
    assert results == {np.float32(answer(problem, data)).tobytes()}


def turns(pd: dnn.PrimitiveDesc) -> int:
    """How often another part goes on, of those of 2x2 pixels, by where records write."""
    (dst,) = (phase.records[:, 1 + DST] for phase in pd.plan.phases)
    rows, pixels = (dst // dnn.f32.size_bytes // stride % 2 for stride in pd.dst_desc.strides[2:])
    return int(np.count_nonzero(np.diff(2 * rows + pixels)))


def test_large_results_are_written_in_shorter_turns(isa: str) -> None:
    """With equal bits, as only the order of tiles differs; on any number of threads."""
    problem = parse_deconv_problem("mb1ic16ih24iw20oc16kh2kw2sh2sw2")
    desc, data, found, counts = described(problem, "nhwc", "nhwc", "any"), data_of(problem), [], []
    for numbers in ({}, {"part_turns": 8}, {"part_turns": 8, "part_turns_bytes": 1}):
        with tuned("convolution", **numbers):
            for threads in (1, 2, 3, 7):
                pd = proved_desc(desc, dnn.Attr(), dnn.Engine(isa=isa, threads=threads))
                found.append(run(pd, data))
            counts.append(turns(pd))
    assert counts[0] == counts[1] == 3 and counts[2] == 8 * 4 - 1
    assert len({x.tobytes() for x in found}) == 1
    assert_within(found[0], answer(problem, data), 0.0)


def test_classes_take_turns_as_they_were_measured() -> None:
    problem = parse_deconv_problem("mb1ic64ih184iw320oc64oh368ow640kh2kw2sh2sw2ph0pw0")
    desc, found = described(problem, "any", "any", "any"), []
    for isa, machine in (("avx512_core", "zen3"), ("avx512_core", "zen5"), ("avx2", "zen3"), ("avx2", "zen5")):
        pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1, machine=machine, l2_bytes=1 << 20))
        assert pd.implementation == f"direct:{isa}"
        found.append(turns(pd))
    assert found[:2] == [3, 4 * 64 - 1] and found[2] == found[3]


def test_many_images_are_rounds() -> None:
    pd = dnn.primitive_desc(
        described(parse_deconv_problem("mb5001ic8ih4oc8kh2sh2"), "any", "any", "any"), engine=dnn.Engine(isa="avx2")
    )
    pd.plan.check()
    assert sum(len(phase.records) for phase in pd.plan.phases) < 30_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("direct", "mb1ic4ih3oc5oh9kh1sh3"),
        ("depthwise", "g19mb2ic19ih5oc19oh14kh1sh3"),
        ("depthwise", "g16mb1ic16ih4iw30oc16oh10ow89kh2kw1sh3sw3ph1pw0"),
        ("grouped", "g5mb1ic20ih3oc20oh14kh2sh5"),
        ("grouped", "g4mb2ic8iw9oc8ow25kw1sw3"),
        ("depthwise", "g8mb1ic8id2ih3iw3oc8od4oh9ow7kd1kh3kw1sd3sh3sw3pd0ph0pw0"),
    ],
)
def test_nothing_reaches_some_pixels(isa: str, name: str, text: str) -> None:
    """A stride beyond the kernel leaves pixels that get the bias, through the post-ops."""
    problem = parse_deconv_problem(text)
    data = data_of(problem)
    pd = proved(described(problem, "any", "any", "any"), isa, dnn.Attr([dnn.Eltwise("relu")]))
    assert pd.implementation.split(":")[0].endswith(name)
    wanted = np.maximum(answer(problem, data), 0)
    assert np.array_equal(run(pd, data), wanted)
    bias = np.maximum(data["bias"], 0).reshape(1, -1, *[1] * (wanted.ndim - 2))
    assert (wanted == bias).all(axis=(0, 1)).any()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dst": (1, 4, 9, 10)}, "dst's height is 9, src, weights, strides and padding make it 10"),
        ({"padding_r": (-2, 0)}, "padding_r of -2 is too small, it must be larger than -stride, -2"),
        ({"padding_l": (11, 0)}, "padding of 11 and 0 leaves nothing of dst's height"),
        ({"weights": (3, 4, 8, 2, 2)}, "weights has 24 input channels in 3 groups, src has 8"),
        ({"weights": (4, 8, 2)}, "weights must have 4 or 5 dims, not 3"),
        ({"strides": (0, 1)}, "strides must be two integers from 1"),
    ],
)
def test_what_does_not_fit(changed: dict[str, tuple[int, ...]], message: str) -> None:
    dims = {"src": (1, 8, 5, 5), "weights": (4, 8, 2, 2), "dst": (1, 4, 10, 10)}
    tensors = {name: dnn.MemoryDesc(changed.get(name, size), dnn.f32, "any") for name, size in dims.items()}
    window = {"strides": (2, 2), **{name: value for name, value in changed.items() if name not in dims}}
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.DeconvolutionForward(**tensors, **window)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ic3ih4oc4oh12kh2sh2ph0", "oh12 does not fit ih4 kh2 sh2 ph0 dh0: 4 outputs would be after the last window"),
        ("ic3ih4oc4kh2ph9", "ph9 leaves nothing of the 5 outputs"),
        ("g2ic3ih4oc4kh2", "'ic' is 3, it must be a multiple of g2"),
    ],
)
def test_problems_that_are_none(text: str, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        parse_deconv_problem(text)


@pytest.mark.parametrize(("channels", "along"), [(17, True), (300, False)])
@pytest.mark.parametrize("types", [(dnn.u8, dnn.s8, dnn.u8), (dnn.bf16,) * 3], ids=str)
def test_pixels_that_lie_apart_are_written_whole(channels: int, along: bool, types: tuple[dnn.DataType, ...]) -> None:
    """Of channels last, where L1 keeps all weights: a tile takes all panels before the next tile, and no line of dst
    waits for its pixel's other channels."""
    src, weights, dst = types
    tensors = (
        dnn.MemoryDesc((1, channels, 14, 14), src, "nhwc"), dnn.MemoryDesc((512, channels, 1, 1), weights, "any"),
        dnn.MemoryDesc((1, 512, 27, 27), dst, "nhwc"),
    )  # fmt: skip
    desc = dnn.DeconvolutionForward(*tensors, strides=(2, 2))
    pd = proved_desc(desc, engine=dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen5"))
    assert pd.implementation.startswith("direct:")
    places = pd.plan.phases[0].records[:, 1 + DST]
    two_rows = 2 * 27 * 512 * dst.size_bytes
    assert (places[: len(places) // 14].max() < two_rows) == along
