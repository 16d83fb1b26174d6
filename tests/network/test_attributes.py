"""Attributes of nodes in files: what is not known, or of another kind, is said; the table is ONNX's own."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.folding.bodies import BODIES
from asmdnn.network.folding.sequences import SEQUENCES
from asmdnn.network.onnx.reader import OPSETS
from asmdnn.network.operators import attributes as table
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.operators.table import operators
from tests.network import wire
from tests.network.nets import engine


def loaded(op: str, opset: int = 17, **attributes: Any) -> dnn.Network:
    """A network of one node on x: f32[1, 4, 8, 8]."""
    node = wire.node(op, ["x"], ["y"], "n", **attributes)
    return dnn.load_onnx(wire.model(wire.graph([node], {"x": (1, 4, 8, 8)}, ["y"]), opset), engine=engine())


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("MaxPool", {"kernel_shape": (2, 2), "stride": (2, 2)}, "MaxPool 'n' has the attribute 'stride', .* mean strides?"),
    ("MaxPool", {"kernel_shape": 2}, "MaxPool 'n' has kernel_shape=2, which must be integers$"),
    ("MaxPool", {}, "MaxPool 'n' lacks the attribute kernel_shape, which must be integers$"),
    ("MaxPool", {"kernel_shape": (2, 2), "auto_pad": "SAME"}, "has auto_pad='SAME', which must be one of NOTSET, "),
    ("Relu", {"axis": 1}, "Relu 'n' has the attribute 'axis', which Relu has not: it has none$"),
    ("LpNormalization", {"p": "x"}, "has p='x', which must be an integer$"),
    ("Selu", {"alpha": "x"}, "has alpha='x', which must be a number$"),
    ("LayerNormalization", {"epsilon": "x"}, "has epsilon='x', which must be a number$"),
    ("ConstantOfShape", {"value": "x"}, "has value='x', which must be a tensor$"),
    ("If", {"then_branch": 1}, "If 'n' has then_branch=1, which must be a graph$"),
]


@pytest.mark.parametrize(("op", "attributes", "message"), MISTAKES, ids=[message for *_, message in MISTAKES])
def test_what_a_file_must_not_say(op: str, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        loaded(op, **attributes)


def test_attributes_that_a_definition_reads_by_version() -> None:
    loaded("Clip", 10, min=0.0, max=6.0)
    with pytest.raises(dnn.InvalidArguments, match="min, which is an input since 11, and the operator set is 13"):
        loaded("Clip", 13, min=0.0)
    with pytest.raises(dnn.InvalidArguments, match="nearest_mode, which Resize has from operator set 11 on, not in 10"):
        loaded("Resize", 10, nearest_mode="floor")


def test_numbers_of_every_library() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (1, 4, 8, 8))
    y = graph.apply("LeakyRelu", graph.apply("Transpose", x, perm=np.array([0, 2, 3, 1])), alpha=np.float32(0.5))
    net = graph.compile(y=graph.apply("ReduceMean", y, axes=[np.int64(3)], keepdims=False), engine=engine())
    x_array = np.arange(-128, 128, dtype=np.float32).reshape(1, 4, 8, 8)
    wanted = np.where(x_array < 0, x_array / 2, x_array).mean(1)
    assert np.allclose(net.run({"x": x_array})["y"], wanted)


KINDS = {
    "INT": table.INT, "INTS": table.INTS, "FLOAT": table.FLOAT, "FLOATS": table.FLOATS, "STRINGS": table.TEXTS,
    "TENSOR": table.TENSOR, "SPARSE_TENSOR": table.TENSOR, "GRAPH": table.BODY,
}  # fmt: skip


def test_the_table_is_that_of_the_specification() -> None:
    defs = pytest.importorskip("onnx", reason="the networks extra: pip install onnx").defs
    known = {*operators(), *BODIES, *SEQUENCES} - {MAP}
    found = {op: dict[str, tuple[str, bool]]() for op in known}
    for op in known:
        for version in OPSETS:
            if defs.has(op, version):
                for name, attribute in defs.get_schema(op, version).attributes.items():
                    found[op][name] = (attribute.type.name, attribute.required)
    assert {op for op in table.ATTRIBUTES if op != MAP} == {op for op in known if found[op]}
    for op, names in found.items():
        own = table.ATTRIBUTES.get(op, table.NONE)
        assert not names.keys() - own.keys(), op
        for name, (kind, is_required) in names.items():
            kinds = (table.TEXT.kind, "one of ") if kind == "STRING" else KINDS[kind].kind
            assert own[name].kind.startswith(kinds), (op, name)
            assert is_required or not own[name].needed, (op, name)
