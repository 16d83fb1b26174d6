"""How far steps and outputs are from definitions: the report of `verify`, and of the command."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.network.verification import off_a_step
from tests.network import wire
from tests.network.nets import engine, random, reference, residual_graph

BF16 = "avx512_core_bf16"


def cancelling() -> dnn.Network:
    """A step that is exact, one that rounds numbers near 1000, and one that takes such numbers from one another."""
    g = dnn.Graph()
    pooled = g.apply("MaxPool", g.input("x", (1, 1, 8, 8)), kernel_shape=(2, 2), strides=(2, 2), name="pool")
    rows = g.apply("Reshape", pooled, np.array((4, 4)))
    near = g.apply("Gemm", rows, random(4, 2), np.full(2, 1000, np.float32), name="first")
    return g.compile(near=near, far=near @ np.float32([[1], [-1]]), engine=engine())


@pytest.mark.isa("avx2")
def test_errors_are_largest_first_and_those_of_the_whole_way() -> None:
    """Of a difference of rounded numbers: its own error is small, that at the end is not."""
    net = cancelling()
    feeds = {"x": random(1, 1, 8, 8)}
    found = net.verify(feeds)
    assert repr(found) == str(found)  # a REPL shows the table
    assert repr([*found]) == f"[{', '.join(map(str, found))}]"
    assert all(one.fits for one in found)
    assert [one.label for one in found.outputs] == ["far", "near"]
    exact, given = reference(net, feeds), net.run(feeds)
    for one in found.outputs:
        wanted = np.abs(given[one.label] - exact[one.label]).max() / np.abs(exact[one.label]).max()
        assert one.from_f64 == pytest.approx(wanted, rel=1e-6)
    assert sorted((one.from_f64 for one in found.steps), reverse=True) == [one.from_f64 for one in found.steps]
    assert found.outputs[0].from_f64 > 1e-5 > 1e-6 > found.outputs[1].from_f64
    worst = found.steps[0]
    assert worst.by_itself is not None
    assert worst.by_itself < 1e-6 < worst.from_f64
    assert [one.from_f64 for one in found.steps if one.label.startswith("MaxPool 'pool'")] == [0.0]


@pytest.mark.isa(BF16)
def test_bf16_is_far_from_f32_and_float64_alike() -> None:
    g, outputs = residual_graph()
    net, exact = (g.compile(engine=engine(isa=BF16), precision=word, **outputs) for word in ("bf16", "f32"))
    feeds = {"x": random(1, 3, 16, 16)}
    narrow, wide = net.verify(feeds).outputs, exact.verify(feeds).outputs
    assert min(one.from_f64 for one in narrow) > 20 * max(one.from_f64 for one in wide)
    for one in narrow:
        assert one.from_f32 == pytest.approx(one.from_f64, rel=0.02)


@pytest.mark.isa("avx2")
def test_saturation_is_said() -> None:
    g = dnn.Graph()
    scale, zero = np.float32(0.01), np.zeros((), np.int8)
    integers = g.apply("QuantizeLinear", g.input("x", (4, 32)), scale, zero, name="q")
    net = g.compile(y=g.apply("DequantizeLinear", integers, scale, zero), engine=engine())
    found = net.verify({"x": np.tile([2.0, 0.1, 0.1, -0.1], (4, 8)).astype(np.float32)})
    assert [one.saturated for one in found.saturated] == [0.25]
    assert "QuantizeLinear 'q'" in str(found) and "25.00% saturated" in str(found)
    assert "nothing is saturated" in str(net.verify({"x": np.zeros((4, 32), np.float32)}))


@pytest.mark.isa("avx2")
def test_states_stay_as_they_are() -> None:
    g = dnn.Graph()
    x, total = g.input("x", (3,)), g.state("total", (3,))
    net = g.compile(y=g.update(total, total + x) * 2.0, engine=engine())
    net.run({"x": np.ones(3, np.float32)})
    (found,) = net.verify({"x": np.ones(3, np.float32)}).outputs
    assert found.from_f64 == 0.0
    assert net.state["total"].tolist() == [1, 1, 1]


@pytest.mark.isa("avx2")
def test_a_report_is_a_list_and_goes_elsewhere() -> None:
    found = cancelling().verify({"x": random(1, 1, 8, 8)})
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert str(again) == str(found)


@pytest.mark.isa("avx2")
def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [wire.node("MatMul", ["x", "w"], ["p"], "product"), wire.node("Exp", ["p"], ["y"])]
    path = tmp_path / "product.onnx"
    path.write_bytes(wire.model(wire.graph(nodes, {"x": (4, 8)}, ["y"], {"w": random(8, 5)})))
    assert main(["run", "--threads=1", "--verify", str(path)]) == 0
    printed = capsys.readouterr().out
    for text in ("within its bound", "  y: ", "from float64", "MatMul 'product' + Exp", "nothing is saturated"):
        assert text in printed


@pytest.mark.isa("avx2")
def test_sums_that_cancel_are_held_to_the_size_of_their_terms() -> None:
    """Of 2,048 numbers and the same with the other sign, in another order: the exact sum is 0, and f32's is not."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(0, 1000, 2048).astype(np.float32)
    x = np.concatenate([numbers, -rng.permutation(numbers)]).reshape(64, 64)
    g = dnn.Graph("cancels")
    given = g.input("x", x.shape)
    net = g.compile(total=g.apply("ReduceSum", given, keepdims=0), mean=g.apply("ReduceMean", given), engine=engine())
    found = net.verify({"x": x})
    assert any(one.difference > 0 for one in found)
    assert all(one.fits for one in found)
    assert all(one.bound < 1e-2 * abs(x).sum() for one in found)


def test_a_rounding_may_decide_between_two_steps() -> None:
    """10 f32(0.7) is 7 in f32, and less than 7 exactly; what lies between steps is none the less held to its own."""
    g = dnn.Graph("steps")
    x = g.input("x", (1, 6))
    net = g.compile(y=g.apply("Floor", x * np.float32(0.7)), engine=engine())
    values = np.float32([[10, 20, 30, 1, 2, 5]])
    assert net.run({"x": values})["y"][0, 0] == 7 and np.floor(10 * np.float64(np.float32(0.7))) == 6
    (found,) = net.verify({"x": values})
    assert found.fits and found.difference == 0
    (segment,) = net.segments
    (group,) = segment.segment.groups  # type: ignore[union-attr]
    known = {**{name: one.data for name, one in net.graph.values.items() if one.data is not None}, "x": values}
    wrong = np.floor(values * 0.7) + np.eye(6)[3]
    assert off_a_step(group, known, group.result, wrong) == 1
