"""Formats that cost least over the whole graph, where each step by itself would pay more."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from asmdnn.network.building import Symbol
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.descriptors import layout_of
from asmdnn.network.format_choice import BY_ITSELF, LAST, PLAIN, FormatChoice
from asmdnn.network.fusion.maps import Group
from asmdnn.network.joining.join import deliver
from asmdnn.network.joining.place import Place
from asmdnn.network.layouts import FormatPath, may_win
from asmdnn.network.lowering.table import lower
from asmdnn.network.steps import Steps
from tests.network import wire
from tests.network.nets import compiled, random, reference, residual_graph

LEVELS = ("avx2", "avx512_core")
Made = tuple[dnn.Graph, dict[str, Symbol]]
Make = Callable[[], Made]
CHANNELS = 32
FREEDOM = 6  # groups for which all choices are tried


def engine(isa: str, threads: int = 1) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=threads, l2_bytes=512 << 10, machine="zen3")


def conv(g: dnn.Graph, x: Symbol, channels: int, size: int, name: str) -> Symbol:
    return g.apply("Conv", x, random(CHANNELS, channels, size, size), pads=(size // 2,) * 4, name=name)


def normed() -> Made:
    """What ConvNeXt does: a convolution, and a norm over channels, which wants these last."""
    g = dnn.Graph("normed")
    x = g.apply("Relu", g.input("x", (1, CHANNELS, 12, 12)))
    made = conv(g, conv(g, x, CHANNELS, 3, "first"), CHANNELS, 3, "second")
    last = g.apply("Transpose", made, perm=(0, 2, 3, 1))
    y = g.apply("LayerNormalization", last, random(CHANNELS), axis=-1)
    return g, {"y": y}


def delivered() -> Made:
    """A result that the caller gets row-major, and that a convolution reads, too."""
    g = dnn.Graph("delivered")
    x = g.input("x", (1, CHANNELS, 12, 12))
    made = g.apply("Relu", conv(g, x, CHANNELS, 3, "first"))
    return g, {"made": made, "y": g.apply("Sigmoid", conv(g, made, CHANNELS, 1, "second"))}


def shared() -> Made:
    """An input that three convolutions read, of which each would reorder it for itself."""
    g = dnn.Graph("shared")
    x = g.input("x", (1, 64, 14, 14))
    ends = [conv(g, x, 64, 3, name) for name in "abc"]
    return g, {"y": ends[0] + ends[1] * ends[2]}


def repeated() -> Made:
    """A row that is shown five times, which needs strides, not blocks."""
    g = dnn.Graph("repeated")
    row = conv(g, g.input("x", (1, CHANNELS, 1, 12)), CHANNELS, 1, "first")
    wide = g.apply("Expand", row, np.array((1, CHANNELS, 5, 12), np.int64))
    return g, {"y": g.apply("MatMul", wide, random(12, 8))}


NETS = (normed, delivered, shared, repeated, residual_graph)


def planned(make: Make, isa: str, threads: int = 1) -> dnn.Network:
    g, outputs = make()
    return g.compile(**outputs, engine=engine(isa, threads))


def formats(segment: CompiledSegment) -> list[str]:
    return [layout_of(step.pd.plan.tensors["dst"]) for step in segment.steps if step.nodes]


def reorders(segment: CompiledSegment) -> int:
    return sum(step.is_reorder for step in segment.steps)


def sequences(groups: tuple[Group, ...]) -> Iterator[tuple[FormatChoice, ...]]:
    """All that groups may be told."""
    choices = [FormatChoice(result, copies) for result in ("", PLAIN, LAST) for copies in (False, True)]
    free = [group.main is not None and group.main.op == "Conv" for group in groups]
    assert sum(free) <= FREEDOM
    return product(*(choices if one else [BY_ITSELF] for one in free))


def cost(segment: CompiledSegment, engine: dnn.Engine, told: tuple[FormatChoice, ...]) -> int:
    """Cycles of all steps, a large number where a primitive cannot do what it is told."""
    steps = Steps(segment.graph, engine)
    try:
        for group, choice in zip(segment.segment.groups, told, strict=True):
            steps.choice = choice
            lower(steps, group)
        deliver(steps, segment.graph.outputs)
    except AsmdnnError:
        return 1 << 60
    return sum(step.pd.plan.cycles for step in steps.steps)


@pytest.mark.parametrize("isa", LEVELS)
def test_a_convolution_writes_channels_last_for_a_norm(isa: str) -> None:
    segment = compiled(planned(normed, isa))
    blocks = "nChw8c" if isa == "avx2" else "nChw16c"
    assert formats(segment)[1:3] == [blocks, "nhwc"]
    assert reorders(segment) == 0
    assert segment.way.changes == (("Conv 'second'", LAST),)
    assert (
        f"formats of 1 result chosen otherwise than each by itself, {segment.way.cycles} cycles"
        in planned(normed, isa).explain()
    )


@pytest.mark.parametrize("isa", LEVELS)
def test_convolutions_share_a_copy_of_their_operand(isa: str) -> None:
    segment = compiled(planned(shared, isa))
    assert [step.label for step in segment.steps if step.is_reorder] == ["reorder x", "reorder Add 4"]
    assert segment.way.changes == (("Conv 'c'", "preferred format from a copy"),)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("make", NETS)
def test_no_way_is_dearer_than_each_step_by_itself(make: Make, isa: str) -> None:
    net = planned(make, isa)
    net.check()
    segment = compiled(net)
    told = (BY_ITSELF,) * len(segment.segment.groups)
    assert segment.way.by_themselves == cost(segment, net.engine, told)
    assert segment.way.cycles == sum(step.pd.plan.cycles for step in segment.steps) <= segment.way.by_themselves


@pytest.mark.parametrize("make", [normed, delivered, shared])
def test_the_way_is_the_cheapest_of_all(make: Make) -> None:
    net = planned(make, "avx2")
    segment = compiled(net)
    costs = [cost(segment, net.engine, told) for told in sequences(segment.segment.groups)]
    assert segment.way.cycles == min(costs)


def test_a_way_to_formats_that_no_reorder_makes_goes_on() -> None:
    net = planned(repeated, "avx2")
    segment = compiled(net)
    steps = Steps(segment.graph, net.engine)
    other = steps.branch()
    (place,) = steps.places["x"]
    other.places["x"] = [Place("x", dnn.MemoryDesc(place.desc.dims, dnn.f32, strides=(0, 0, 0, 0)))]
    assert may_win(FormatPath(other, 1 << 40), FormatPath(steps, 0), ["x"])
    other.places["x"] = [Place("x", dnn.MemoryDesc(place.desc.dims, dnn.f32, "acdb"))]
    assert not may_win(FormatPath(other, 1 << 40), FormatPath(steps, 0), ["x"])


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("make", NETS)
def test_values_and_bits(make: Make) -> None:
    g, outputs = make()
    nets = [g.compile(**outputs, engine=engine("avx2", threads)) for threads in (1, 2)]
    ((name, (dims, _)),) = nets[0].inputs.items()
    feeds = {name: random(*dims)}
    answers, wanted = [net.run(feeds) for net in nets], reference(nets[0], feeds)
    for key, exact in wanted.items():
        np.testing.assert_allclose(answers[0][key], exact, rtol=0, atol=1e-5 * abs(exact).max())
        assert np.array_equal(answers[0][key], answers[1][key])


def test_a_step_whose_first_result_nobody_wants() -> None:
    weights = {"w": random(1, 16, 3), "r": random(1, 16, 4)}
    body = wire.graph([wire.node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=4)], {"x": (5, 1, 3)}, ["y"], weights)
    net = dnn.load_onnx(wire.model(body), engine=engine("avx2"))
    assert net.outputs["y"][0] == (1, 1, 4)
    assert compiled(net).way.changes == ()


AFTER_REPEATED = {
    "CumSum": lambda g, x: g.apply("CumSum", x, np.int64(1)),
    "InstanceNormalization": lambda g, x: g.apply("InstanceNormalization", x, random(3), random(3)),
    "LRN": lambda g, x: g.apply("LRN", x, size=3),
    "Softmax": lambda g, x: g.apply("Softmax", x, axis=1),
    "LayerNormalization": lambda g, x: g.apply("LayerNormalization", x, random(8)),
    "Sigmoid": lambda g, x: g.apply("Sigmoid", x),
    "Mul": lambda g, x: g.apply("Mul", x, random(1, 3, 1, 1)),
    "MaxPool": lambda g, x: g.apply("MaxPool", x, kernel_shape=(2, 2)),
    "Resize": lambda g, x: g.apply("Resize", x, np.zeros(0, np.float32), np.float32([1, 1, 2, 2])),
}


@pytest.mark.parametrize("op", AFTER_REPEATED)
def test_what_reads_repeated_images_is_native(op: str) -> None:
    g = dnn.Graph(op)
    x = g.input("x", (1, 3, 8, 8))
    y = AFTER_REPEATED[op](g, g.apply("Expand", x, np.int64([2, 3, 8, 8])))
    net, values = g.compile(y=y, engine=engine("avx2")), random(1, 3, 8, 8)
    net.check()
    found, wanted = net.run({"x": values})["y"], reference(net, {"x": values})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
