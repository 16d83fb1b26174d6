"""Convolutions of bf16 by pairs along a row of the kernel: sums, edges, what is beside a window, weights, refusals."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.planning.codec import decode_plan, encode_plan
from asmdnn.primitives.convolution.element_axis import ElementAxis, pieces_of_runs
from tests.conformance.kinds import cases
from tests.conformance.running import Conforming, naming
from tests.primitives.guarded import in_child
from tests.primitives.typed_conv import TypedConv, check_halves, computed, holding, numbers, stored

LEVEL, NAME = "avx512_core_bf16", "kernel_rows:avx512_core_bf16"
OPEN, LAST, PLANES = ("any", "any", "any"), ("axb", "any", "axb"), ("abx", "any", "abx")
TYPES = (dnn.bf16, dnn.bf16, dnn.f32)

SHAPES = {  # problem, formats, who takes it
    "7x7 of stride 2": ("mb1ic3ih30oc40kh7sh2ph3", LAST, NAME),
    "an even run": ("mb1ic3ih20oc32kh6sh2ph2", OPEN, NAME),
    "one channel": ("mb3ic1ih9oc16kh5ph2", OPEN, NAME),
    "one channel, planes": ("mb2ic1ih9iw31oc33oh9ow31kh3kw3ph1pw1", ("abx", "any", "axb"), NAME),
    "five channels": ("mb1ic5ih7iw19oc7kh2kw3ph1pw1", LAST, NAME),
    "seven channels": ("mb2ic7ih5oc65kh3ph1", LAST, NAME),
    "blocks of dst": ("mb1ic3ih9oc48kh3ph1", ("axb", "any", "aBx16b"), NAME),
    "one axis": ("mb2ic3iw57oc24kw5pw2", LAST, NAME),
    "a long filter": ("mb1ic1iw400oc20ow50kw65sw7pw4", OPEN, NAME),
    "three axes": ("mb1ic3id4ih5iw7oc18kd2kh3kw3pd1ph1pw1", LAST, NAME),
    "rows apart": ("mb1ic3ih12iw12oc16oh10ow12kh3kw3ph1pw1dh1dw0", LAST, NAME),
    "padding as wide as the kernel": ("mb1ic3ih2iw3oc16oh8ow9kh3kw3ph4pw4", LAST, NAME),
    "rows of two elements": ("mb1ic1ih4iw2oc16oh4ow4kh3kw3ph1pw2", LAST, NAME),
    "rows of one element": ("mb1ic1ih4iw1oc16oh4ow3kh3kw3ph1pw2", OPEN, NAME),
    "strides beyond the kernel": ("mb1ic3ih11iw20oc16kh2kw3sh4sw5", LAST, NAME),
    "planes": ("mb1ic3ih9oc24kh3ph1", PLANES, f"reorder+{NAME}"),
    "plain weights": ("mb1ic3ih9oc24kh3ph1", ("axb", "abx", "axb"), f"pack+{NAME}"),
    "planes, plain weights": ("mb1ic3ih9oc24kh3ph1", ("abx", "abx", "abx"), f"pack+reorder+{NAME}"),
}


@pytest.mark.isa(LEVEL)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums(shape: str) -> None:
    text, tags, name = SHAPES[shape]
    assert check_halves(text, tags, dnn.bf16, LEVEL).implementation == name


@pytest.mark.emulated(LEVEL)
@pytest.mark.parametrize("text", ["mb1ic3ih5iw9oc19oh3ow5kh3kw3sh2sw2ph1pw1", "mb1ic1ih3iw7oc16kh2kw3ph1pw2"])
def test_sums_on_every_cpu(text: str) -> None:
    case = TypedConv(text, TYPES, tags=LAST)
    data = case.data()
    exact = {name: np.rint(4 * values) for name, values in data.items()}  # of few bits, so that nothing is rounded
    pd = case.planned(LEVEL)
    assert pd.implementation == NAME
    assert np.array_equal(computed(pd, exact, emulated=True), sums_of(case.problem, exact["src"], exact["weights"]))


@pytest.mark.isa(LEVEL)
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("padding", [0, 1, 2, 5])
def test_nothing_beside_a_window_is_multiplied(channels: int, width: int, padding: int) -> None:
    """A pixel that is infinite makes no result but those of its windows infinite, or not a number."""
    case = TypedConv(f"mb1ic{channels}ih3iw17oc16kh3kw{width}ph1pw{padding}", TYPES, tags=LAST)
    data = case.data()
    pd = case.planned(LEVEL)
    assert ("kernel_rows" in pd.implementation) == (width > 1)
    finite = computed(pd, data)
    for x in (0, 7, 16):
        spoiled = data["src"].copy()
        spoiled[:, :, 1, x] = np.inf
        found = computed(pd, {**data, "src": spoiled})
        reached = np.zeros(found.shape[-1], bool)
        reached[max(0, x + padding - width + 1) : x + padding + 1] = True
        assert not np.isfinite(found[..., reached]).any()
        assert np.array_equal(found[..., ~reached], finite[..., ~reached])


@pytest.mark.isa(LEVEL)
@pytest.mark.parametrize("at_end", [True, False])
def test_nothing_outside_is_touched(at_end: bool) -> None:
    """The cases of all kinds on guarded memory, and with several threads, where this level takes them so."""
    with_rows = [case for case in map(Conforming, cases("conv", "cases")) if NAME in case.planned(LEVEL).implementation]
    assert len(with_rows) >= 8

    def run() -> None:
        for case in with_rows:
            with naming(case.case):
                case.run_guarded(case.planned(LEVEL, threads=1 + 2 * at_end), at_end)

    assert not (report := in_child(run)), report


@pytest.mark.isa(LEVEL)
def test_gaps_between_rows_of_src() -> None:
    case = TypedConv("mb2ic3ih7iw9oc24kh3kw3ph1pw1", TYPES, tags=LAST)
    desc = case.desc()
    apart = dnn.MemoryDesc(desc.src.dims, dnn.bf16, strides=(400, 1, 31, 3), offset0=5)
    pd = dnn.primitive_desc(replace(desc, src=apart), engine=dnn.Engine(isa=LEVEL, threads=1, machine="zen3"))
    data = case.data()
    assert pd.implementation == NAME
    assert np.array_equal(computed(pd, data), computed(case.planned(LEVEL), data))


@pytest.mark.isa(LEVEL)
@pytest.mark.parametrize(("source", "dtype"), [
    (dnn.f32, dnn.bf16), (dnn.bf16, dnn.bf16), (dnn.f32, dnn.f16), (dnn.f16, dnn.f16),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("tag", ["abcd", "acdb", "bcda", "ABcd2b8a"])
def test_a_reorder_makes_the_weights(source: dnn.DataType, dtype: dnn.DataType, tag: str) -> None:
    random = np.random.default_rng(3)
    dims = (21, 3, 2, 5)
    values = random.integers(-9, 9, dims).astype(float)
    given = dnn.Memory.from_numpy(stored(values, source), dnn.MemoryDesc(dims, source, tag))
    desc = KernelRowsDesc(dims, dtype, 16)
    wanted = np.zeros((32, 2, 16))
    wanted[:21, :, :15] = values.transpose(0, 2, 3, 1).reshape(21, 2, 15)
    wanted = wanted.reshape(2, 16, 2, 8, 2).transpose(0, 2, 3, 1, 4).ravel()  # panel, row, pair, channel, of a pair
    made = dnn.reorder(given, desc, dnn.Engine(isa=LEVEL, threads=2))
    assert np.array_equal(made.array, stored(wanted, dtype))
    assert np.array_equal(dnn.Memory.from_numpy(stored(values, dtype), desc).array, made.array)


@pytest.mark.isa(LEVEL)
def test_a_deconvolutions_gradient_of_data_is_such_a_convolution() -> None:
    """Whose weights have input and output channels exchanged; any two formats of them give the same bits."""
    random, engine = np.random.default_rng(5), dnn.Engine(isa=LEVEL, threads=1, machine="zen3")
    dims = {"diff_src": (2, 19, 5, 4), "weights": (3, 19, 4, 3), "diff_dst": (2, 3, 10, 7)}
    values = {name: random.integers(-4, 5, dims[name]).astype(float) for name in ("weights", "diff_dst")}
    found = []
    for tag in ("any", "abcd"):
        given = {name: dnn.MemoryDesc(d, dnn.bf16, tag if name == "weights" else "axb") for name, d in dims.items()}
        desc = dnn.DeconvolutionBackwardData(**given, strides=(2, 2), padding_l=(1, 1), padding_r=(1, 1))
        pd = dnn.primitive_desc(desc, engine=engine)
        pd.plan.check()
        assert pd.implementation == ("" if tag == "any" else "pack+") + NAME
        memories = {name: holding(pd.plan.tensors[name], x) for name, x in values.items()}
        if tag == "any":
            plain = holding(dnn.MemoryDesc(dims["weights"], dnn.bf16, "abcd"), values["weights"])
            assert np.array_equal(dnn.reorder(plain, pd.weights_desc).array, memories["weights"].array)
            assert dnn.primitive_desc(replace(desc, weights=pd.weights_desc), engine=engine).implementation == NAME
        memories["diff_src"] = dnn.Memory(pd.plan.tensors["diff_src"])
        dnn.Primitive(pd).execute(**memories)
        found.append(numbers(memories["diff_src"].numpy().view(np.uint16), dnn.bf16))
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(values["diff_dst"], ((0, 0), (0, 0), (1, 1), (1, 1))), (4, 3), axis=(2, 3)
    )[:, :, ::2, ::2]
    wanted = np.einsum("ncyxrs,cors->noyx", windows, values["weights"])
    assert np.abs(wanted).max() <= 2**15  # sums are exact, and rounded once
    assert np.abs(found[0] - wanted).max() <= np.abs(wanted).max() * 2**-8
    assert np.array_equal(*found)


def test_what_weights_refuse() -> None:
    desc = KernelRowsDesc((8, 3, 3, 3), dnn.bf16, 16)
    memory = dnn.Memory(desc)
    calls = (
        memory.numpy,
        memory.view,
        lambda: desc.offset((0, 0, 0, 0)),
        lambda: desc.permute_axes((1, 0, 2, 3)),
        lambda: desc.reshape((24, 9)),
        lambda: dnn.reorder(memory, dnn.MemoryDesc(desc.dims, dnn.bf16, "oihw")),
        lambda: dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 2)),
        lambda: KernelRowsDesc((8, 3, 3, 3), dnn.f32, 16),
        lambda: KernelRowsDesc((8, 3), dnn.bf16, 16),
    )
    for call in calls:
        with pytest.raises((dnn.InvalidArguments, dnn.Unimplemented)):
            call()


def test_packed_weights_have_one_reader() -> None:
    """Where pairs of rows are not read, the refusals of all say so."""
    case = TypedConv("mb1ic3ih9oc24kh3ph1", TYPES, tags=LAST)
    rows = case.planned(LEVEL).weights_desc
    assert isinstance(rows, KernelRowsDesc)
    assert TypedConv("mb1ic3ih9oc24kh3ph1", TYPES, tags=LAST).planned(LEVEL).weights_desc == rows
    engine = dnn.Engine(isa=LEVEL, threads=1, machine="zen3")
    again = dnn.primitive_desc(replace(case.desc(), weights=rows), engine=engine)
    assert (again.implementation, again.weights_desc) == (NAME, rows)
    kept, _ = decode_plan(encode_plan(again.plan, ()))
    assert kept.tensors == again.plan.tensors
    other = KernelRowsDesc(rows.dims, dnn.bf16, 8)
    blocked = dnn.MemoryDesc(case.desc().src.dims, dnn.bf16, "aBcd4b")
    window = {"dilations": (1, 1), "padding_l": (2, 2), "padding_r": (2, 2)}
    for changed in ({"weights": other}, {"weights": rows, **window}):
        with pytest.raises(dnn.Unimplemented, match="rows:Ohwi"):
            dnn.primitive_desc(replace(case.desc(), **changed), engine=engine)
    copied = dnn.primitive_desc(replace(case.desc(), weights=rows, src=blocked), engine=engine)
    assert copied.implementation == f"reorder+{NAME}"


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("mb1ic4ih9oc24kh3ph1", LAST), ("mb1ic3ih9oc24kh3ph2dh1", LAST), ("mb1ic3ih9oc24kh1", LAST),
        ("g3mb1ic3ih9oc24kh3ph1", LAST), ("mb1ic9ih9oc24kh3ph1", LAST),
        ("mb1ic3ih9oc24kh3ph1", ("aBx4b", "any", "axb")), ("mb1ic3ih9oc24kh3ph1", ("axb", "ABx2b16a2b", "axb")),
    ],
)  # fmt: skip
def test_others_are_not_taken(text: str, tags: tuple[str, str, str]) -> None:
    assert "kernel_rows" not in TypedConv(text, TYPES, tags=tags).planned(LEVEL).implementation


def test_pieces_are_those_elements_that_exist() -> None:
    """Of all windows of a row, each element of the run that lies inside once, in taps of at most so many groups."""
    cases = ((9, 9, 3, 1, 1, 3), (4, 9, 7, 1, 6, 1), (11, 4, 5, 3, 2, 5))
    for size, pixels, kernel, stride, padding, channels in cases:
        run = kernel * channels
        axis = ElementAxis(
            i=size * channels, o=pixels, k=-(-run // 2), s=stride * channels, d=2, p=padding * channels, run=run
        )
        reach = axis.reach(np.arange(pixels))
        every = np.arange(reach[:, 0].min(), reach[:, 1].max())
        reached = axis.reached(reach, every)
        for x in range(pixels):
            positions = [(int(at),) for at in every[reached[:, x]]]
            pieces = pieces_of_runs(axis, positions, 4)
            found = [2 * at + e for count, first, begins in pieces for (at,) in begins for e in range(first, count)]
            start = (x * stride - padding) * channels
            assert sorted(found) == [e for e in range(run) if 0 <= start + e < axis.i]
            assert all(count <= 8 for count, *_ in pieces)
