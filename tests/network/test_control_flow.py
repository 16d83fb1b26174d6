"""If, Loop and Scan whose data decide: native, and equal to onnxruntime."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
F32, BOOL, INT = 1, 9, 7
Named = tuple[str, int, list[int]]


def graph(nodes: list[Any], inputs: list[Named], outputs: list[Named], constants: dict[str, Any] | None = None) -> Any:
    from onnx import helper, numpy_helper

    infos = [[helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs)]
    data = [numpy_helper.from_array(np.asarray(x), name) for name, x in (constants or {}).items()]
    return helper.make_graph(nodes, "g", *infos, data)


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return onnx.helper.make_node(op, inputs, outputs, **attributes)


def bytes_of(whole: Any) -> bytes:
    model = onnx.helper.make_model(whole, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def compare(whole: Any, *feeds: dict[str, Any]) -> dnn.Network:
    """On each of these, which go different ways."""
    net = dnn.load_onnx(bytes_of(whole), engine=engine(2))
    net.check()
    session = onnxruntime.InferenceSession(bytes_of(whole), providers=["CPUExecutionProvider"])
    for given in feeds:
        names = [x.name for x in session.get_outputs()]
        for name, wanted in zip(names, session.run(None, given), strict=True):
            found = net.run(given)[name]
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    return net


SUM = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "zero"], ["c"])]
ZERO = {"zero": np.float32(0)}
WAYS = [{"x": np.float32([[1, 2, -1]])}, {"x": np.float32([[-4, 1, 2]])}]


def chosen(then: list[Any], otherwise: list[Any], dims: tuple[list[int], list[int]] = ([1, 3], [1, 3])) -> Any:
    """Branches that make `a` and `b`."""
    branches = {
        name: graph(nodes, [], [("a", F32, size), ("b", F32, [1, 3])])
        for name, nodes, size in (("then_branch", then, dims[0]), ("else_branch", otherwise, dims[1]))
    }
    nodes = [*SUM, node("If", ["c"], ["y", "z"], **branches)]
    return graph(nodes, [("x", F32, [1, 3])], [("y", F32, None), ("z", F32, None)], ZERO)


def test_branches() -> None:
    """Of a value that is an infinity in the branch which is not chosen, too."""
    then = [node("Relu", ["x"], ["a"]), node("Log", ["x"], ["b"])]
    otherwise = [node("Neg", ["x"], ["a"]), node("Identity", ["x"], ["b"])]
    with np.errstate(all="ignore"):
        compare(chosen(then, otherwise), {"x": np.float32([[1, 2, 1]])}, WAYS[1], {"x": np.float32([[0, -1, 0]])})


def test_branches_that_cannot_be_chosen_from() -> None:
    one = [node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["b"])]
    other = [node("Transpose", ["x"], ["a"]), node("Neg", ["x"], ["b"])]
    with pytest.raises(dnn.Unimplemented, match=r"makes float32\[1, 3\] and float32\[3, 1\] of 'y', as data choose"):
        dnn.load_onnx(bytes_of(chosen(one, other, ([1, 3], [3, 1]))), engine=engine())
    taken = [node("Cast", ["s"], ["i"], to=INT), node("Gather", ["x", "i"], ["g"], axis=0)]
    looked = [*taken, node("Add", ["x", "g"], ["a"]), node("Neg", ["x"], ["b"])]
    with pytest.raises(dnn.Unimplemented, match="may be wrong in what is not chosen"):
        dnn.load_onnx(bytes_of(chosen(one, looked)), engine=engine())


def loop(limit: int | None, condition: str, nodes: list[Any], made: list[Named] | None = None) -> Any:
    """Of a value x, from a condition that is data or none; the body makes `on2` and `w` of `v`."""
    ends = [("on2", BOOL, []), ("w", F32, [1, 3]), *(made or [])]
    body = graph(nodes, [("i", INT, []), ("on", BOOL, []), ("v", F32, [1, 3])], ends)
    outputs = ["y", *(name + "s" for name, *_ in made or [])]
    whole = [*SUM, node("Loop", ["M" if limit is not None else "", condition, "x"], outputs, body=body)]
    constants = {**ZERO, "hundred": np.float32(100), "M": np.int64(limit or 0)}
    return graph(whole, [("x", F32, [1, 3])], [(name, F32, None) for name in outputs], constants)


DOUBLED = [
    node("Add", ["v", "v"], ["w"]),
    node("ReduceMax", ["w"], ["most"], keepdims=0),
    node("Less", ["most", "hundred"], ["on2"]),
]
LAST = [node("Add", ["v", "v"], ["w"]), node("Identity", ["on"], ["on2"])]


def branches(then: list[Any], other: list[Any], **data: Any) -> Any:
    """What data choose: the last results of some nodes."""
    bodies = [graph(nodes, [], [(nodes[-1].output[0], F32, [2])], data) for nodes in (then, other)]
    chosen = node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1])
    return graph([chosen], [("c", BOOL, []), ("x", F32, [1, 3])], [("y", F32, None)])


def test_look_ups_by_constants_are_in_either_branch() -> None:
    """Also where one branch is in another."""
    rows = node("Gather", ["x", "at"], ["row"], axis=1)
    flat = node("Reshape", ["row", "two"], ["a"])
    own = {"at": np.array([2, 0]), "two": np.array([2])}
    inner = [graph([node(op, ["row"], [op]), node("Reshape", [op, "two"], [f"{op} 2"])], [], [(f"{op} 2", F32, [2])])
             for op in ("Neg", "Exp")]  # fmt: skip
    nested = node("If", ["c"], ["b"], then_branch=inner[0], else_branch=inner[1])
    for other in ([rows, nested], [rows, node("Neg", ["row"], ["n"]), node("Reshape", ["n", "two"], ["b"])]):
        model = branches([rows, flat], other, **own)
        compare(model, *({"c": np.array(c), "x": random(1, 3)} for c in (True, False)))


def test_a_branch_that_does_not_fit() -> None:
    """Data may never choose it: with numpy the other one runs, and it is refused where it is chosen."""
    fits = [node("Gather", ["x", "at"], ["a"], axis=1), node("Reshape", ["a", "two"], ["y1"])]
    wrong = [node("Add", ["x", "far"], ["s"], name="sum"), node("Reshape", ["s", "two"], ["y2"])]
    data = bytes_of(branches(fits, wrong, at=np.array([2, 0]), two=np.array([2]), far=np.ones((1, 7), np.float32)))
    said = "If 'y' chooses by the data of 'c', and Add 'sum' cannot be computed of"
    with pytest.raises(dnn.Unimplemented, match=said):
        dnn.load_onnx(data, engine=engine())
    net = dnn.load_onnx(data, engine=engine(), fallback="numpy")
    x = random(1, 3)
    for _ in range(2):
        np.testing.assert_array_equal(net.run({"c": np.array(True), "x": x})["y"], x[0, [2, 0]])
        with pytest.raises(dnn.InvalidArguments, match="Add 'sum' cannot be computed of"):
            net.run({"c": np.array(False), "x": x})


@pytest.mark.parametrize("condition", ["", "c"])
@pytest.mark.parametrize("nodes", [DOUBLED, LAST], ids=["ends by data", "ends by count"])
def test_rounds(condition: str, nodes: list[Any]) -> None:
    ends = [{"x": np.float32([[-1, 3, 60]])}, {"x": np.float32([[0, 0, 1e-3]])}, {"x": np.float32([[150, 0, 0]])}]
    compare(loop(8, condition, nodes), *WAYS, *ends)


def test_loops_that_may_not_end() -> None:
    for limit in (None, 1 << 40):
        with pytest.raises(dnn.Unimplemented, match="give it at most 256 rounds, a constant M"):
            dnn.load_onnx(bytes_of(loop(limit, "", DOUBLED)), engine=engine())
    handed = [*DOUBLED, node("Neg", ["w"], ["row"])]
    with pytest.raises(dnn.Unimplemented, match="only loops that constants count hand out rows"):
        dnn.load_onnx(bytes_of(loop(4, "", handed, [("row", F32, [1, 3])])), engine=engine())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("turned", [0, 1])
def test_scans(turned: int, axis: int) -> None:
    """A state, two parts along different axes, one of them from its end, and results along an axis."""
    nodes = [node("Mul", ["p", "q"], ["pq"]), node("Add", ["h", "pq"], ["h2"]), node("Relu", ["h2"], ["row"])]
    body = graph(nodes, [("h", F32, [4]), ("p", F32, [4]), ("q", F32, [4])], [("h2", F32, [4]), ("row", F32, [4])])
    how = {
        "num_scan_inputs": 2, "scan_input_axes": [axis, 1], "scan_input_directions": [0, turned],
        "scan_output_axes": [1], "scan_output_directions": [turned],
    }  # fmt: skip
    dims = [4, 4] if axis else [6, 4]
    dims[axis] = 6
    inputs = [("x", F32, [4]), ("a", F32, dims), ("b", F32, [4, 6])]
    scan = node("Scan", ["x", "a", "b"], ["y", "z"], body=body, **how)
    net = compare(
        graph([scan], inputs, [("y", F32, None), ("z", F32, None)]),
        {"x": random(4), "a": random(*dims), "b": random(4, 6)},
    )
    assert net.outputs["z"][0] == (4, 6)


def test_scans_that_do_not_fit() -> None:
    body = graph([node("Add", ["h", "p"], ["h2"])], [("h", F32, [4]), ("p", F32, [4])], [("h2", F32, [4])])
    scan = node("Scan", ["x", "a"], ["y"], body=body, num_scan_inputs=1, scan_input_axes=[0, 1])
    whole = graph([scan], [("x", F32, [4]), ("a", F32, [6, 4])], [("y", F32, None)])
    with pytest.raises(dnn.InvalidArguments, match="has 2 scan_input_axes, it must have 1"):
        dnn.load_onnx(bytes_of(whole), engine=engine())


def test_a_model_may_call_its_values_as_bodies_would_be_called() -> None:
    """Of a condition that is known the branch comes in its node's place, its values under names that no others have."""
    adding = [node("Add", ["branch 1/a", "branch 1/a"], ["a"]), node("Neg", ["a"], ["b"])]
    twice = graph(adding, [], [("b", F32, [1, 3])])
    once = graph([node("Identity", ["x"], ["b"])], [], [("b", F32, [1, 3])])
    nodes = [
        node("Exp", ["x"], ["branch 1/a"]),
        node("If", ["yes"], ["z"], then_branch=twice, else_branch=once),
        node("Mul", ["z", "branch 1/a"], ["branch 1/b"]),
        node("Add", ["branch 1/b", "x"], ["y"]),
    ]
    compare(graph(nodes, [("x", F32, [1, 3])], [("y", F32, [1, 3])], {"yes": np.True_}), *WAYS)
