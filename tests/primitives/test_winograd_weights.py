"""Winograd's gradients of weights: values within a bound from the matrices, threads, chunks, pages, refusals."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.problems import ConvProblem
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.convolution_backward.weights import convolution_of, renamed
from asmdnn.primitives.convolution_backward.winograd import plan as winograd
from asmdnn.primitives.convolution_backward.winograd.cut import GradientCut, chunks_of
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.types import IsaName
from tests.generators.references.winograd import matrices
from tests.primitives import conv_gradients as reference
from tests.primitives.conv_case import MACHINE
from tests.primitives.conv_gradients import described, problem_of
from tests.primitives.gradient_case import THREADS, assert_results, check, memories_of
from tests.primitives.guarded import check_at_pages, guarded_tensors
from tests.support.plans import execute

M = 4
UNIT_ROUNDOFF = 2.0**-24
ROUNDINGS = 36  # of a term in the transforms of source, diff_dst and sums, for both axes

# What takes it without its ISA level, the problem, and the layouts of src, dst and weights.
LINES = """
winograd         mb2ic20ih9oc24kh3ph1               any  any  any
winograd         mb1ic16ih8iw13oc40kh3kw3ph0pw1     nhwc nhwc any
winograd         mb3ic5ih7iw4oc9kh3kw3ph1pw2        nhwc any  any
winograd         mb1ic33ih3oc17kh3ph1               any  nhwc any
winograd         mb1ic8ih3oc8kh3                    any  any  any
winograd         g2mb2ic24ih6oc32kh3ph1             any  any  any
reorder+winograd mb2ic19ih10oc20kh3ph1              nchw nchw oihw
reorder+winograd g3mb1ic12ih5oc48kh3ph1             nhwc nchw goihw
""".strip()
CASES = [line.split() for line in LINES.splitlines()]
ALL = pytest.mark.parametrize(("name", "text", "src", "dst", "weights"), CASES)
CUTS = ["2,8,1", "4,16,1", "4,16,2", "9,8,9", "100,64,1"]  # tiles of a chunk, rows and panels of a unit
CHUNKED = "mb3ic20ih11oc56kh3ph1"


def numbers(p: ConvProblem) -> dict[str, Any]:
    random = np.random.default_rng(7)
    dims = {"src": p.src_dims, "diff_dst": p.dst_dims}
    return {name: random.standard_normal(size).astype(np.float32) for name, size in dims.items()}


def gradient_desc(text: str, algorithm: Any) -> Any:
    return described(dnn.ConvolutionBackwardWeights, problem_of(text), {}, algorithm=algorithm)


def gradient(text: str, tags: dict[str, str]) -> tuple[Any, Any, Any, Any]:
    """(description, inputs, results, tolerance)."""
    p = problem_of(text)
    arrays = numbers(p)
    wanted = {"diff_weights": reference.of_weights(p, arrays["src"], arrays["diff_dst"])}
    bound = {"diff_weights": tolerance(p, arrays)}
    if "bias" in tags:
        diff = arrays["diff_dst"].astype(float)
        wanted["diff_bias"] = diff.sum(axis=(0, 2, 3))
        bound["diff_bias"] = np.abs(diff).sum(axis=(0, 2, 3)) * p.mb * np.prod(p.dst_dims[2:]) * UNIT_ROUNDOFF
    return described(dnn.ConvolutionBackwardWeights, p, tags, algorithm="winograd"), arrays, wanted, bound


def tolerance(p: ConvProblem, arrays: dict[str, Any]) -> Any:
    """gamma(tiles + roundings) times the size of all that is added to a result, tile by tile (Higham, section 3.1)."""
    results, weights, source = (np.abs(matrix) for matrix in matrices(M))
    rows, cols = (-(-n // M) for n in p.dst_dims[2:])
    x = np.zeros((p.mb, p.ic, rows * M + 2, cols * M + 2))
    top, left = p.padding_l
    inside = np.abs(arrays["src"])[:, :, : rows * M + 2 - top, : cols * M + 2 - left]
    x[:, :, top : top + inside.shape[2], left : left + inside.shape[3]] = inside
    tiles = np.lib.stride_tricks.sliding_window_view(x, (M + 2, M + 2), (2, 3))[:, :, ::M, ::M]
    d = np.zeros((p.mb, p.oc, rows * M, cols * M))
    d[:, :, : p.dst_dims[2], : p.dst_dims[3]] = np.abs(arrays["diff_dst"])
    parts = d.reshape(p.mb, p.oc, rows, M, cols, M).transpose(0, 1, 2, 4, 3, 5)
    of_x = np.einsum("ai,ncyxij,bj->ncyxab", source, tiles, source, optimize=True)
    of_d = np.einsum("ia,noyxij,jb->noyxab", results, parts, results, optimize=True)
    of_x, of_d = (z.reshape(p.mb, p.groups, -1, *z.shape[2:]) for z in (of_x, of_d))
    sums = np.einsum("ngcyxab,ngoyxab->gocab", of_x, of_d, optimize=True)
    size = np.einsum("ar,gocab,bs->gocrs", weights, sums, weights, optimize=True).reshape(p.weights_dims)
    terms = p.mb * rows * cols + ROUNDINGS
    return size * (terms * UNIT_ROUNDOFF / (1 - terms * UNIT_ROUNDOFF))


@ALL
def test_results(isa: IsaName, name: str, text: str, src: str, dst: str, weights: str) -> None:
    """Of weights and bias, for every number of threads alike."""
    desc, arrays, wanted, bound = gradient(text, {"src": src, "dst": dst, "weights": weights, "bias": "a"})
    pd = check(desc, arrays, wanted, isa, bound)
    assert pd.implementation == f"{name}:{isa}"
    assert [*pd.plan.tensors] == ["src", "diff_weights", "diff_dst", "diff_bias"]


def with_cut(text: str, cut: GradientCut, isa: IsaName, threads: int = 1) -> tuple[PrimitiveDesc, int]:
    """The proven plan with that cut, and its number of chunks."""
    desc, *_ = gradient(text, {})
    engine = dnn.Engine(isa=isa, threads=threads, machine=MACHINE)
    p, names = convolution_of(desc)
    lanes = lanes_of(isa)
    p = p.with_formats({name: winograd.own_format(tensor, lanes) for name, tensor in (("src", p.src), ("dst", p.dst))})
    pd = PrimitiveDesc(desc, dnn.Attr(), engine, renamed(winograd.with_cut(p, engine, cut), names))
    pd.plan.check()
    return pd, len(chunks_of(winograd.geometry_of(p, engine)[0], cut))


@pytest.mark.parametrize("numbers_of_cut", CUTS)
def test_cuts(isa: IsaName, numbers_of_cut: str) -> None:
    """Parts of an image, whole images, units of all sizes; zeros after the last channel; equal bits."""
    cut = GradientCut(M, *map(int, numbers_of_cut.split(",")))
    _, arrays, wanted, bound = gradient(CHUNKED, {})
    results = []
    for threads in THREADS:
        pd, chunks = with_cut(CHUNKED, cut, isa, threads)
        memories = memories_of(pd, arrays)
        execute(pd, memories, emulated=False)
        assert memories["diff_weights"].padding_is_zero()
        results.append(memories["diff_weights"].numpy())
    assert chunks == {2: 9, 4: 9, 9: 3, 100: 1}[cut.tiles]
    assert_results({"diff_weights": results[0]}, wanted, bound)
    assert {result.tobytes() for result in results} == {results[0].tobytes()}


@pytest.mark.parametrize("level", ["avx2", "avx512_core"])
def test_emulated(level: IsaName) -> None:
    desc, arrays, wanted, bound = gradient("mb1ic10ih6oc9kh3ph1", {"src": "nhwc"})
    engine = dnn.Engine(isa=level, threads=1, machine=MACHINE)
    pd = dnn.primitive_desc(desc, engine=engine)
    memories = memories_of(pd, arrays)
    execute(pd, memories, emulated=True)
    assert_results({"diff_weights": memories["diff_weights"].numpy()}, wanted, bound)


def test_at_pages(isa: IsaName) -> None:
    """Nothing is read or written outside of tensors."""
    text = "mb2ic11ih7iw6oc13kh3kw3ph1pw1"
    desc, arrays, wanted, bound = gradient(text, {"src": "nhwc", "dst": "nhwc"})
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1, machine=MACHINE))
    held = memories_of(pd, arrays)

    def fill(name: str, memory: dnn.Memory) -> None:
        memory.array[:] = held[name].array

    def once(at_end: bool) -> None:
        memories = guarded_tensors(pd.plan, at_end, fill)
        execute(pd, memories, emulated=False)
        assert_results({"diff_weights": memories["diff_weights"].numpy()}, wanted, bound)

    check_at_pages(once)


def test_infinities_stay_in_their_channels(isa: IsaName) -> None:
    """And the padding of panels is zero all the same."""
    desc, arrays, _, _ = gradient("mb1ic20ih8oc40kh3ph1", {})
    arrays["src"][0, 3, 4, 4] = np.inf
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1, machine=MACHINE))
    memories = memories_of(pd, arrays)
    execute(pd, memories, emulated=False)
    finite = np.isfinite(memories["diff_weights"].numpy()).all(axis=(0, 2, 3))
    assert np.flatnonzero(~finite).tolist() == [3]


def test_padding_of_panels_that_are_asked_for(isa: IsaName) -> None:
    """Panels of the forward pass, whose last one is not full."""
    forward = described(dnn.ConvolutionForward, problem_of("mb1ic20ih6oc48kh3ph1"), {})
    weights = dnn.primitive_desc(forward, engine=dnn.Engine(isa=isa, threads=1, machine=MACHINE)).weights_desc
    desc, arrays, wanted, bound = gradient("mb1ic20ih6oc48kh3ph1", {})
    pd = check(desc.with_formats({"diff_weights": weights}), arrays, wanted, isa, bound)
    assert pd.diff_weights_desc == weights


@pytest.mark.parametrize(
    ("text", "machine", "level", "taken"),
    [
        ("mb1ic64ih56oc64kh3ph1", "zen4", "avx512_core", "winograd"),
        ("mb16ic256ih14oc256kh3ph1", "zen3", "avx2", "winograd"),
        ("mb1ic512ih7oc512kh3ph1", "zen3", "avx2", "direct"),
        ("mb1ic3ih32oc16kh3ph1", "zen3", "avx2", "direct"),
        ("mb1ic64ih56oc64kh3sh2ph1", "zen3", "avx2", "direct"),
        ("mb1ic64ih14oc64kh1", "zen3", "avx2", "direct"),
        ("g32mb1ic32ih14oc32kh3ph1", "zen3", "avx2", "depthwise"),
    ],
)
def test_auto(text: str, machine: str, level: IsaName, taken: str) -> None:
    desc = gradient_desc(text, "auto")
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=level, threads=1, machine=machine))
    assert pd.implementation.split(":")[0] == taken


def test_auto_says_why_not() -> None:
    desc = gradient_desc("mb1ic512ih7oc512kh3ph1", "auto")
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1, machine=MACHINE))
    assert "cycles, direct tiles" in str(pd.refusals)


def test_direct_is_the_default() -> None:
    pd = dnn.primitive_desc(described(dnn.ConvolutionBackwardWeights, problem_of("mb1ic64ih56oc64kh3ph1"), {}))
    assert pd.implementation.startswith("direct:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mb1ic8ih8oc8kh3sh2ph1", r"diff_weights are 3x3, strides \(2, 2\), dilations \(0, 0\): it is for dense 3x3"),
        ("mb1ic8ih8oc8kh5ph2", "diff_weights are 5x5"),
        ("mb1ic8iw8oc8kw3pw1", "src has 1 spatial axes, only 2 are implemented"),
        ("g2mb1ic8ih8oc8kh3ph1", "groups have 4 output channels, which are no whole vectors of 8"),
        ("mb0ic8ih8oc8kh3ph1", "src or diff_dst has no elements"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    desc = gradient_desc(text, "winograd")
    with pytest.raises(dnn.Unimplemented, match=message) as refused:
        dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1, machine=MACHINE))
    assert "direct" not in str(refused.value)


@pytest.mark.parametrize(
    ("dtype", "message"), [(dnn.bf16, "src is bf16, kernels take f32"), (dnn.s8, "src is s8, only f32")]
)
def test_types(dtype: dnn.DataType, message: str) -> None:
    desc = gradient_desc("mb1ic8ih8oc8kh3ph1", "winograd")
    with pytest.raises(dnn.Unimplemented, match=message):
        dnn.primitive_desc(desc.with_formats({"src": dnn.MemoryDesc(desc.src.dims, dtype, "any")}))


def test_attributes() -> None:
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops, scales or zero points"):
        dnn.primitive_desc(gradient_desc("mb1ic8ih8oc8kh3ph1", "winograd"), dnn.Attr([dnn.Eltwise("relu")]))


def test_plans_do_not_grow_with_images() -> None:
    """Chunks of equal tiles share their records."""
    engine = dnn.Engine(isa="avx2", threads=1, machine=MACHINE)
    few, many = (
        dnn.primitive_desc(gradient_desc(f"mb{mb}ic16ih56oc16kh3ph1", "winograd"), engine=engine).plan for mb in (2, 64)
    )
    assert many.nbytes == few.nbytes
