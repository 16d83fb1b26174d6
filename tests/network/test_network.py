"""Networks as a whole: values, fusion, one call, memory, errors."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.network.calls.running import WEIGHTS, Runner
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.joining import arena
from tests.network import wire
from tests.network.nets import compiled, engine, random, reference, residual, residual_graph

LEVELS = ("avx2", "avx512_core")
RELATIVE = 1e-5  # of the largest value: sums of some thousand products of f32


def check_values(net: dnn.Network, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found, wanted = net.run(feeds), reference(net, feeds)
    assert found.keys() == wanted.keys()
    for name, array in found.items():
        assert array.dtype == net.outputs[name][1]
        np.testing.assert_allclose(array, wanted[name], rtol=0, atol=RELATIVE * abs(wanted[name]).max())
    return found


@pytest.mark.isa("avx2")
def test_a_network_computes_what_its_operators_say() -> None:
    net = residual()
    net.check()
    check_values(net, {"x": random(1, 3, 16, 16)})


@pytest.mark.parametrize("isa", LEVELS)
def test_what_is_fused(isa: str) -> None:
    """Batch norm in weights, hardswish and the residual as post-ops, branches without a pass of their own."""
    net = residual(isa=isa)
    net.check()
    segment = compiled(net)
    labels = [step.label for step in segment.steps if not step.is_reorder]
    assert labels == [
        "Conv 'stem' + Add, Clip, Mul, Div",
        "Conv 'block' + Add, Relu",
        "Gemm 'head' + Softplus",
    ]
    found = [step.pd.implementation for step in segment.steps if step.label.startswith("Conv")]
    assert found[0] == f"few_inputs:{isa}"
    assert found[1] in (f"direct:{isa}", f"winograd:{isa}")
    assert "kernels" in net.explain()


@pytest.mark.isa("avx2")
def test_equal_bits_for_every_number_of_threads() -> None:
    x = random(1, 3, 16, 16)
    g, outputs = residual_graph()
    answers = [g.compile(engine=engine(threads), **outputs).run({"x": x}) for threads in (1, 2, 3)]
    for name, array in answers[0].items():
        for other in answers[1:]:
            np.testing.assert_array_equal(array, other[name])


@pytest.mark.isa("avx2")
def test_a_bound_call_writes_where_it_was_told() -> None:
    net = residual()
    arrays = {
        "x": random(1, 3, 16, 16),
        "y": np.empty((1, 10), np.float32),
        "joined": np.empty((1, 16, 8, 8), np.float32),
    }
    run = net.bind(**arrays)
    run()
    first = arrays["y"].copy()
    np.testing.assert_array_equal(first, net.run({"x": arrays["x"]})["y"])
    arrays["x"][...] = random(1, 3, 16, 16)
    run()
    assert (arrays["y"] != first).any()


def test_bound_outputs_share_no_memory() -> None:
    """Neither with inputs, which a later step may still read, nor with one another."""
    g = dnn.Graph()
    x = g.input("x", (8, 8))
    net = g.compile(engine=engine(), a=x @ random(8, 8), b=x @ random(8, 8))
    one, other = random(8, 8), random(8, 8)
    buffer = np.zeros(65 * 8, np.float32)
    ends = buffer[: 64 * 8].reshape(64, 8), buffer[8:].reshape(64, 8)
    for arrays, words in (
        ({"x": one, "a": one, "b": other}, "a shares memory with x"),
        ({"x": one, "a": other, "b": other}, "b shares memory with a"),
        ({"x": ends[0][:8], "a": other, "b": ends[1][:8]}, "b shares memory with x"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=f"{words}: give it an array of its own"):
            net.bind(**arrays)


def test_memory_is_shared_by_what_is_not_alive_together() -> None:
    g = dnn.Graph()
    x = y = g.input("x", (1, 16, 32, 32))
    for i in range(6):
        y = g.apply("Conv", y, random(16, 16, 3, 3), pads=(1, 1, 1, 1), name=f"layer {i}")
    net = g.compile(engine=engine(), y=y, x_again=x + 1.0)
    segment = compiled(net)
    layout, size = segment.layout, 4 * 16 * 32 * 32
    assert layout.arena_bytes <= 4 * size
    net.check()
    one, two = (name for name in segment.joined.plan.scratch_bytes if name in ("Conv 1", "Conv 2"))
    wrong = replace(layout, arena={**layout.arena, two: layout.arena[one]})
    with pytest.raises(PlanError, match="both alive"):
        arena.check_layout(segment.joined, wrong, arena.placed_plan(segment.joined, wrong))
    outside = replace(layout, arena={**layout.arena, two: layout.arena_bytes})
    with pytest.raises(PlanError, match="of the arena"):
        arena.check_layout(segment.joined, outside, arena.placed_plan(segment.joined, outside))
    with pytest.raises(PlanError, match="not where"):
        arena.check_layout(segment.joined, outside, segment.plan)
    name = max(layout.weights, key=layout.weights.__getitem__)
    for weights, words in (({name: 0}, "where others lie"), ({name: layout.weights_bytes}, "weights end at byte")):
        wrong = replace(layout, weights={**layout.weights, **weights})
        with pytest.raises(PlanError, match=words):
            arena.check_layout(segment.joined, wrong, arena.placed_plan(segment.joined, wrong))


def test_a_plan_that_is_not_the_one_that_was_proved() -> None:
    """Whatever of it is changed: a place, a piece, the order of phases, or which thread runs one."""
    g = dnn.Graph()
    x = g.input("x", (1, 16, 12, 12))
    y = g.apply("Relu", g.apply("Conv", x, random(16, 16, 3, 3), pads=(1, 1, 1, 1)) + 1.0)
    segment = compiled(g.compile(engine=engine(), y=g.apply("Softmax", y)))
    plan = segment.plan
    arena.check_layout(segment.joined, segment.layout, plan)
    mutants = [
        replace(plan, phases=plan.phases[:-1]),
        replace(plan, tensors={**plan.tensors, "more": plan.tensors[WEIGHTS]}),
    ]
    mutants += [replace(plan, outputs=()), replace(plan, scratch_bytes={}), replace(plan, constants={})]
    for i, phase in enumerate(plan.phases):
        changed = [replace(phase, alone=not phase.alone), replace(phase, continues=not phase.continues)]
        changed += [replace(phase, records=phase.records.copy()), replace(phase, flushes=not phase.flushes)]
        for j, view in enumerate(phase.arguments):
            moved = (view._replace(buffer="input x 2"), view._replace(offset_bytes=64), view._replace(size_bytes=0))
            arguments = [(*phase.arguments[:j], other, *phase.arguments[j + 1 :]) for other in moved if other != view]
            changed += [replace(phase, arguments=each) for each in arguments]
        mutants += [replace(plan, phases=(*plan.phases[:i], each, *plan.phases[i + 1 :])) for each in changed]
    for mutant in mutants:
        with pytest.raises(PlanError):
            arena.check_layout(segment.joined, segment.layout, mutant)


@pytest.mark.parametrize(
    ("taken", "size", "where"),
    [([], 64, 0), ([(0, 64)], 64, 64), ([(64, 128)], 64, 0), ([(0, 64), (192, 256), (320, 400)], 64, 256)],
)
def test_the_smallest_gap(taken: list[tuple[int, int]], size: int, where: int) -> None:
    assert arena.best_gap(size, taken) == where


@pytest.mark.isa("avx2")
def test_indices_that_numpy_computes() -> None:
    """Arithmetic of integers without a kernel comes first, then everything else in one call, which checks them."""
    g = dnn.Graph()
    ids, x = g.input("ids", (4, 3), np.int64), g.input("x", (4, 8))
    even = g.apply("BitwiseOr", ids, np.array(0))
    rows = [g.apply("Gather", even, np.array(i), axis=1) + i for i in range(3)]
    looked_up = [g.apply("Gather", random(20, 8), row) for row in rows]
    net = g.compile(y=x + looked_up[0] * looked_up[1] + looked_up[2], engine=engine(), fallback="numpy")
    assert [isinstance(segment, CompiledSegment) for segment in net.segments] == [False, True]
    feeds = {"ids": np.arange(12).reshape(4, 3), "x": random(4, 8)}
    np.testing.assert_allclose(net.run(feeds)["y"], reference(net, feeds)["y"], rtol=1e-6, atol=1e-7)
    with pytest.raises(dnn.InvalidArguments, match="20"):
        net.run(feeds | {"ids": np.full((4, 3), 19)})


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("fallback", [None, "numpy"])
def test_nodes_without_a_kernel(fallback: str | None) -> None:
    nodes = [
        wire.node("Relu", ["x"], ["a"], "first"),
        wire.node("Pad", ["a", "pads"], ["b"], "second", mode="wrap"),
        wire.node("Pad", ["b", "pads"], ["c"], "third", mode="wrap"),
        wire.node("Exp", ["c"], ["y"], "last"),
    ]
    data = wire.model(wire.graph(nodes, {"x": (4, 8)}, ["y"], {"pads": np.array([0, 1, 0, -1])}))
    if fallback is None:
        with pytest.raises(dnn.Unimplemented, match=r"2 of the nodes .* Pad 'second': .*; Pad 'third': "):
            dnn.load_onnx(data, engine=engine())
        return
    net = dnn.load_onnx(data, engine=engine(), fallback="numpy")
    assert [isinstance(segment, CompiledSegment) for segment in net.segments] == [True, False, True]
    assert "numpy  Pad 'second': mode wrap has no kernel" in net.explain()
    check_values(net, {"x": random(4, 8)})
    with pytest.raises(dnn.InvalidArguments, match="can be bound"):
        net.bind(x=random(4, 8), y=random(4, 8))


@pytest.mark.isa("avx2")
def test_views_cost_nothing() -> None:
    """Transposes, slices, splits and reshapes are other descriptors of the same memory."""
    g = dnn.Graph()
    x = g.input("x", (2, 12, 6, 5))
    parts = g.apply("Split", x, np.array([4, 8]), results=2, axis=1)
    turned = g.apply("Transpose", parts[1], perm=(0, 2, 3, 1))
    cut = g.apply("Slice", turned, np.array([1, 0]), np.array([6, 5]), np.array([1, 2]), np.array([2, 2]))
    rows = g.apply("Reshape", g.apply("Squeeze", cut, None), np.array([2, 3, 24]))
    y = g.apply("Relu", rows) + g.apply(
        "Expand", g.apply("Reshape", random(24), np.array([1, 24])), np.array([2, 3, 24])
    )
    net = g.compile(engine=engine(), y=y)
    net.check()
    check_values(net, {"x": random(2, 12, 6, 5)})


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    "make",
    [
        lambda g, x: x @ g.apply("Transpose", x, perm=(0, 2, 1)),
        lambda g, x: g.apply("Relu", x @ random(7, 9) + random(9)),
        lambda g, x: (x @ random(2, 7, 4)) * 0.5,
        lambda g, x: g.apply("MatMul", random(2, 3, 5), x),
        lambda g, x: x + g.apply("Sigmoid", g.apply("MatMul", x, random(7, 7))),
        lambda g, x: g.apply("Max", x, random(1, 1, 7)) - g.apply("Min", x, 0.25),
        lambda g, x: g.apply("Concat", x, x * 2.0, x / random(7), axis=-1),
        lambda g, x: 1.0 / (g.apply("Exp", x) + 1.0),
        lambda g, x: g.apply("Pow", x, 2.0) - g.apply("Gelu", x),
        lambda g, x: g.apply("Identity", x),
        lambda g, x: g.apply("PRelu", x, random(7)),
        lambda g, x: g.apply("Slice", x, np.array([0]), np.array([1]), np.array([1])) * random(2, 5, 1),
        lambda g, x: g.apply("Add", random(5, 7), random(5, 7)),
    ],
)
def test_products_maps_and_moves(make: Callable[[dnn.Graph, Any], Any]) -> None:
    g = dnn.Graph()
    x = g.input("x", (2, 5, 7))
    net = g.compile(engine=engine(), y=make(g, x))
    net.check()
    check_values(net, {"x": random(2, 5, 7)})


def test_inputs_that_do_not_fit() -> None:
    g = dnn.Graph()
    x = g.input("x", ("n", 4))
    y = g.apply("Relu", x)
    for shapes in ({"x": (1, 5)}, {"x": 3}, {"z": (1, 4)}, {"x": (-1, 4)}, 7):
        with pytest.raises(dnn.InvalidArguments):
            g.compile(shapes, engine=engine(), y=y)  # type: ignore[arg-type]
    net = g.compile({"x": (2, 4)}, engine=engine(), y=y)
    for feeds in ({}, {"x": 3}, {"y": random(2, 4)}, {"x": random(2, 5)}, {"x": np.zeros((2, 4))}, 5):
        with pytest.raises(dnn.InvalidArguments):
            net.run(feeds)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="dense"):
        net.bind(x=random(4, 2).T, y=random(2, 4))
    with pytest.raises(dnn.InvalidArguments, match="fallback"):
        g.compile({"x": (2, 4)}, engine=engine(), fallback="torch", y=y)


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ([wire.node("Mystery", ["x"], ["y"])], "Mystery 'y' is an operator that is not known: export the model"),
        ([wire.node("MatMul", ["x", "x"], ["y"], "m")], r"MatMul 'm' cannot be computed of .*float32\[4, 8\]"),
        ([wire.node("Softmax", [], ["y"])], "Softmax 'y' has 0 inputs, and Softmax takes 1 in operator set 17"),
        ([wire.node("Transpose", ["x"], ["y"], perm=[0, 0])], "no order"),
        ([wire.node("Conv", ["x", "x"], ["y"], pads=[1])], "cannot be computed"),
        ([wire.node("ConstantOfShape", ["huge"], ["y"])], "elements|no machine holds|bytes"),
    ],
)
def test_graphs_that_make_no_sense(nodes: list[bytes], what: str) -> None:
    data = wire.model(wire.graph(nodes, {"x": (4, 8)}, ["y"], {"huge": np.array([1 << 40, 1 << 20])}))
    with pytest.raises(dnn.AsmdnnError, match=what):
        dnn.load_onnx(data, engine=engine(), fallback="numpy")


@pytest.mark.isa("avx2")
def test_branches_are_chosen_by_constants() -> None:
    inner = wire.graph([wire.node("Mul", ["x", "two"], ["t"]), wire.node("Add", ["t", "two"], ["a"])], {}, ["a"])
    outer = wire.graph([wire.node("If", ["is"], ["b"], then_branch=inner, else_branch=inner)], {}, ["b"])
    other = wire.graph([wire.node("Neg", ["x"], ["n"])], {}, ["n"])
    nodes = [
        wire.node("Equal", ["rate", "sixteen"], ["is"]),
        wire.node("If", ["is"], ["c"], "choice", then_branch=outer, else_branch=other),
        wire.node("Relu", ["c"], ["y"]),
    ]
    constants = {"two": np.float32(2), "sixteen": np.float32(16)}
    data = wire.model(wire.graph(nodes, {"x": (4,), "rate": ()}, ["y"], constants))
    x = np.float32([-3, -1, 0, 2])
    for rate, wanted in ((16, np.maximum(2 * x + 2, 0)), (8, np.maximum(-x, 0))):
        net = dnn.load_onnx(data, constants={"rate": np.float32(rate)}, engine=engine())
        np.testing.assert_array_equal(net(x), wanted)
    net = dnn.load_onnx(data, engine=engine())  # one If in another, both by data
    for rate, wanted in ((16, np.maximum(2 * x + 2, 0)), (8, np.maximum(-x, 0))):
        np.testing.assert_array_equal(net.run({"x": x, "rate": np.float32(rate)})["y"], wanted)


def looped(limit: object, cond: str = "yes", again: str = "go") -> bytes:
    """x twice as large each round, which hands out its number times x; until x y is read from a caller's array."""
    body = wire.graph(
        [
            wire.node("Add", ["v", "v"], ["w"]),
            wire.node("Cast", ["i"], ["number"], to=1),
            wire.node("Mul", ["number", "w"], ["row"]),
            wire.node("Identity", [again], ["again"]),
        ],
        {"i": (), "go": (), "v": None},
        ["again", "w", "row"],
    )
    nodes = [wire.node("Loop", ["limit", cond, "x"], ["z", "rows"], "loop", body=body), wire.node("Neg", ["z"], ["y"])]
    constants = {"limit": np.int64(limit), "yes": np.bool_(True), "no": np.bool_(False)}
    inputs = {"x": (4,), "asked": ()}
    return wire.model(wire.graph(nodes, inputs, ["y", "rows"], constants))


@pytest.mark.isa("avx2")
def test_loops_that_constants_count_are_unrolled() -> None:
    x = np.float32([-3, -1, 0, 2])
    net = dnn.load_onnx(looped(3), constants={"asked": 1.0}, engine=engine())
    net.check()
    found = net.run({"x": x})
    np.testing.assert_array_equal(found["y"], -8 * x)
    np.testing.assert_array_equal(found["rows"], np.stack([0 * x, 4 * x, 16 * x]))
    once = dnn.load_onnx(looped(3, again="no"), constants={"asked": 1.0}, engine=engine()).run({"x": x})
    np.testing.assert_array_equal(once["y"], -2 * x)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (looped(3, again="asked"), "Loop 'loop' has as many rounds as the data of 'asked' says: only loops that"),
        (looped(3, cond="asked"), "as many rounds as the data of 'asked'"),
        (looped(0), "Loop 'loop' has no rounds"),
        (looped(3, cond="no"), "Loop 'loop' has no rounds"),
        (looped(1 << 40), "the rounds of loops have more than 5000 nodes together"),
        (looped(3).replace(b"\x01v", b"\x01x"), "'x' names a value of a body and one that the body is given"),
    ],
)
def test_loops_that_are_not_unrolled(data: bytes, what: str) -> None:
    with pytest.raises(dnn.AsmdnnError, match=what):
        dnn.load_onnx(data, engine=engine())


def test_graphs_say_what_is_wrong() -> None:
    g, other = dnn.Graph(), dnn.Graph()
    x = g.input("x", (4,))
    for wrong in (
        lambda: g.input("x", (3,)),
        lambda: g.input("z", 3),  # type: ignore[arg-type]
        lambda: g.apply("Nothing", x),
        lambda: g.apply("Add", x, "text"),
        lambda: g.apply("Add", x, other.input("x", (4,))),
        lambda: g.compile(),
        lambda: g.compile(y=3),  # type: ignore[arg-type]
        lambda: g.compile(x=x),
    ):
        with pytest.raises(dnn.InvalidArguments):
            wrong()


@pytest.mark.isa("avx2")
def test_every_group_is_verified_and_timed() -> None:
    net, feeds = residual(), {"x": random(1, 3, 16, 16)}
    found = net.verify(feeds)
    assert [difference.label.split()[0] for difference in found] == ["Conv", "Conv", "Gemm"]
    assert all(difference.fits for difference in found), list(map(str, found))
    assert max(difference.difference / difference.bound for difference in found) > 1e-4, "the bounds say something"
    lines = net.profile(feeds, repeats=2).splitlines()
    segment = compiled(net)
    assert len(lines) == 1 + len(segment.steps)
    with pytest.raises(dnn.InvalidArguments):
        net.verify({})


@pytest.mark.isa("avx2")
def test_the_value_of_two_results_is_verified() -> None:
    g = dnn.Graph()
    values, positions = g.apply("TopK", g.input("x", (3, 9)), np.array([4]), results=2)
    net = g.compile(values=values, positions=positions, engine=engine())
    (found,) = net.verify({"x": random(3, 9)})
    assert (found.label.split()[0], found.difference) == ("TopK", 0.0)


def double(x: Any) -> Any:
    return 2 * x


def branching(x: Any) -> Any:
    return x if x > 0 else 0 * x


def test_a_function_of_ones_own() -> None:
    def bent(x: Any, low: Any, high: Any) -> Any:
        return dnn.where(x < low, low, dnn.where(x > high, high, dnn.square(x)))

    graph = dnn.Graph()
    x, low = graph.input("x", (2, 8, 6, 6)), graph.input("low", (1, 8, 1, 1))
    inner = graph.apply("Conv", x, np.ones((8, 8, 1, 1), np.float32) / 8, name="conv")
    net = graph.compile(y=graph.map(bent, inner, low, 0.75, name="bent"), engine=dnn.Engine(threads=1))
    assert "Conv 'conv' + PythonMap" in net.explain()
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((2, 8, 6, 6), np.float32), "low": rng.standard_normal((1, 8, 1, 1), np.float32)}
    assert all(difference.fits for difference in net.verify(feeds))
    mean = feeds["x"].mean(axis=1, keepdims=True) + np.zeros((1, 8, 1, 1), np.float32)
    np.testing.assert_allclose(net.run(feeds)["y"], bent(mean, feeds["low"], 0.75), atol=1e-5)


def test_functions_that_cannot_be_mapped() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (4,))
    with pytest.raises(dnn.InvalidArguments, match=r"test_network.py:\d+: "):
        graph.map(branching, x)
    with pytest.raises(dnn.InvalidArguments, match="does not depend on operand 1"):
        graph.map(lambda x, y: 2 * x, x, x)
    with pytest.raises(dnn.InvalidArguments, match="a function and its operands"):
        graph.map(double)
    with pytest.raises(dnn.InvalidArguments, match="a function and its operands"):
        graph.map("Relu", x)  # type: ignore[arg-type]
    of_a_file = wire.model(wire.graph([wire.node("PythonMap", ["x"], ["y"], function="double")], {"x": (4,)}, ["y"]))
    with pytest.raises(dnn.Unimplemented, match="PythonMap"):
        dnn.load_onnx(of_a_file, engine=dnn.Engine(threads=1))


def test_a_division_by_zero_is_not_folded_into_weights() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (1, 2, 3, 3))
    inner = graph.apply("Conv", x, np.array([[[[1.0]], [[0.0]]], [[[0.0]], [[1.0]]]], np.float32))
    divisor = np.array([2.0, 0.0], np.float32).reshape(1, 2, 1, 1)
    net = graph.compile(y=graph.apply("Div", inner, divisor), engine=dnn.Engine(threads=1))
    data = np.linspace(-1, 1, 18, dtype=np.float32).reshape(1, 2, 3, 3)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(net(data), data / divisor)


@pytest.mark.parametrize(
    ("equation", "dims"),
    [
        ("ij,jk->ik", ((3, 4), (4, 5))),
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        ("bhid,bhjd->bhij", ((2, 3, 4, 8), (2, 3, 5, 8))),
        ("bihd, bjhd -> bhij", ((2, 4, 3, 8), (2, 5, 3, 8))),
        ("bhwc,cd->bhwd", ((1, 3, 4, 8), (8, 6))),
        ("abc,cbd->dab", ((2, 3, 4), (4, 3, 5))),
        ("i,j->ij", ((3,), (4,))),
        ("ij,kj->", ((3, 4), (2, 4))),
        ("...ij,...jk->...ik", ((2, 3, 4, 5), (2, 3, 5, 6))),
        ("...ij,jk->...ik", ((2, 3, 4, 5), (5, 6))),
        ("ijk->kj", ((2, 3, 4),)),
        ("ij,jk", ((2, 3), (3, 4))),
        ("ba,ac", ((2, 3), (3, 4))),
        ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
        ("abc,cd,bd,e->ade", ((2, 3, 4), (4, 5), (3, 5), (2,))),
        ("...i,...i,...->...", ((2, 3, 4), (3, 4), (2, 3))),
        ("ii->i", ((3, 3),)),
        ("bii->b", ((2, 4, 4),)),
        ("iji->ij", ((3, 5, 3),)),
        ("iii,ij->j", ((3, 3, 3), (3, 2))),
        ("iijj->", ((3, 3, 2, 2),)),
        ("ij,ij->ij", ((3, 1), (3, 4))),
        ("ij,jk->ik", ((3, 1), (4, 5))),
        ("...ij,...jk->...ik", ((2, 1, 4, 5), (3, 5, 6))),
    ],
)
def test_einstein_sums_are_products(equation: str, dims: tuple[tuple[int, ...], ...]) -> None:
    graph = dnn.Graph()
    inputs = [graph.input(f"x{i}", shape) for i, shape in enumerate(dims)]
    net = graph.compile(y=graph.apply("Einsum", *inputs, equation=equation), engine=dnn.Engine(threads=1))
    assert "numpy" not in net.explain()
    rng = np.random.default_rng(0)
    feeds = {f"x{i}": rng.standard_normal(shape, np.float32) for i, shape in enumerate(dims)}
    wanted = np.einsum(equation.replace(" ", ""), *(x.astype(np.float64) for x in feeds.values()))
    np.testing.assert_allclose(net.run(feeds)["y"], wanted, atol=1e-5)


def test_einstein_sums_of_constants_are_folded_where_they_can() -> None:
    """Two constants are multiplied first if their product is small, and once."""
    graph, rng = dnn.Graph(), np.random.default_rng(0)
    x, a, b = graph.input("x", (64, 6)), *(rng.standard_normal(dims, np.float32) for dims in ((6, 7), (7, 2)))
    net = graph.compile(y=graph.apply("Einsum", x, a, b, equation="ij,jk,kl->il"), engine=dnn.Engine(threads=1))
    assert "1 primitives, 0 of them reorders" in net.explain()
    data = rng.standard_normal((64, 6), np.float32)
    np.testing.assert_allclose(net(data), data @ (a @ b), rtol=1e-4, atol=1e-5)


def test_einstein_sums_of_other_types_are_left_to_numpy() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (3, 3), np.int64)
    y = graph.apply("Einsum", x, equation="ii->i")
    with pytest.raises(dnn.Unimplemented, match="Einsum"):
        graph.compile(y=y, engine=dnn.Engine(threads=1))
    net = graph.compile(y=y, engine=dnn.Engine(threads=1), fallback="numpy")
    feeds = {"x": np.arange(9).reshape(3, 3)}
    np.testing.assert_array_equal(net.run(feeds)["y"], [0, 4, 8])


def test_a_turned_residual_of_a_product() -> None:
    graph, rng = dnn.Graph(), np.random.default_rng(0)
    x = graph.input("x", (1, 7, 5, 8))
    turned = graph.apply("Transpose", x, perm=(0, 2, 1, 3))
    weights, bias = rng.standard_normal((8, 8), np.float32), rng.standard_normal(8, np.float32)
    net = graph.compile(y=graph.apply("Relu", turned) @ weights + bias + turned, engine=dnn.Engine(threads=1))
    data = rng.standard_normal((1, 7, 5, 8), np.float32)
    rows = data.swapaxes(1, 2)
    np.testing.assert_allclose(net(data), np.maximum(rows, 0) @ weights + bias + rows, atol=1e-5)


@pytest.mark.isa("avx2")
def test_arrays_are_used_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """No copy of inputs that are dense, none of outputs; what is not dense is copied."""
    net, x = residual(), random(1, 3, 16, 16)
    seen: list[list[int]] = []
    run = Runner.run
    monkeypatch.setattr(Runner, "run", lambda self, addresses: [seen.append(addresses), run(self, addresses)])
    found = net.run({"x": x})
    assert seen[0][0] == x.ctypes.data
    assert {array.ctypes.data for array in found.values()} == set(seen[0][1:])
    turned = np.asfortranarray(x)
    again = net.run({"x": turned})
    assert seen[1][0] != turned.ctypes.data
    for name, array in found.items():
        np.testing.assert_array_equal(again[name], array)
