"""Texts and dicts at the end of classical models, against onnxruntime; inside of one they are refused."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.network.classical import STUMP, attributes_of, model_of, node_of
from tests.network.nets import engine

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.isa("avx2")
X = np.random.default_rng(5).standard_normal((11, 2)).astype(np.float32)
WORDS = ["no", "yes", "é"]


def trees(**labels: Any) -> Any:
    """A node with labels and three scores."""
    attributes = attributes_of([STUMP, STUMP], "class", lambda tree: [(tree, 0.5), (2, 0.25)])
    return node_of("TreeEnsembleClassifier", ("label", "scores"), {**attributes, **labels})


def linear(**labels: Any) -> Any:
    attributes = {"coefficients": [1.0, -2.0, 0.5, 0.25, 0.0, 1.0], "intercepts": [0.5, -1.0, 0.0]}
    return node_of("LinearClassifier", ("label", "scores"), {**attributes, **labels})


def zipped(**labels: Any) -> Any:
    return node_of("ZipMap", ("maps",), labels, ("scores",))


def file(*nodes: Any, outputs: tuple[str, ...], constants: Any = ()) -> bytes:
    """Whose outputs have types that onnx infers."""
    model = onnx.load_from_string(model_of(nodes, X, outputs, constants))
    del model.graph.output[:]
    for name in outputs:
        model.graph.output.add().name = name
    return bytes(model.SerializeToString())


def loaded(data: bytes) -> dnn.Network:
    return dnn.load_onnx(data, {"x": X.shape}, engine=engine())


def theirs(data: bytes) -> list[Any]:
    ort = pytest.importorskip("onnxruntime")
    return list(ort.InferenceSession(data).run(None, {"x": X}))


def encoder(source: str, result: str, **attributes: Any) -> Any:
    return node_of("LabelEncoder", (result,), attributes, (source,))


def plain(op: str, source: str, result: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(op, [source], [result], **attributes)


FILES = {
    "texts of trees": file(trees(classlabels_strings=WORDS), outputs=("label", "scores")),
    "texts of a product": file(linear(classlabels_strings=WORDS), outputs=("label", "scores")),
    "dicts by integers": file(trees(classlabels_int64s=[4, 0, 9]), zipped(classlabels_int64s=[4, 0, 9]),
                              outputs=("label", "maps")),
    "dicts by texts": file(linear(classlabels_strings=WORDS), zipped(classlabels_strings=WORDS),
                           outputs=("label", "maps")),
    "encoded as texts": file(linear(classlabels_ints=[4, 0, 9]), encoder(
        "label", "words", keys_int64s=[0, 9], values_strings=["zero", "nine"], default_string="?"), outputs=("words",)),
    "texts as others": file(linear(classlabels_strings=WORDS), encoder(
        "label", "words", keys_strings=["é", "no"], values_strings=["e", "n"], default_string="?"), outputs=("words",)),
    "texts as integers": file(linear(classlabels_strings=WORDS), encoder(
        "label", "numbers", keys_strings=["é", "other", "no"], values_int64s=[7, 8, 9], default_int64=-5),
        outputs=("numbers",)),
    "moved": file(linear(classlabels_strings=WORDS), plain("Identity", "label", "same"), outputs=("same",)),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_what_a_caller_gets_is_what_onnxruntime_gives(name: str) -> None:
    net = loaded(FILES[name])
    for (output, found), wanted in zip(net.run({"x": X}).items(), theirs(FILES[name]), strict=True):
        dims, dtype = net.outputs[output]
        if isinstance(wanted, list):
            assert dtype.kind == "O"
            assert dims == (len(found),)
            for ours, other in zip(found, wanted, strict=True):
                assert ours.keys() == other.keys()
                np.testing.assert_allclose([ours[key] for key in other], [*other.values()], rtol=1e-6)
            continue
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape) == (dtype, dims)
        if dtype.kind == "O":
            assert found.tolist() == wanted.tolist()
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_words_are_chosen_by_an_index() -> None:
    """As skl2onnx writes models that are no operators of their own."""
    words = onnx.helper.make_tensor("words", onnx.TensorProto.STRING, [3], [word.encode() for word in WORDS])
    chosen = node_of("ArrayFeatureExtractor", ("chosen",), {}, ("words", "best"))
    data = file(plain("ArgMax", "x", "best", axis=1, keepdims=0), chosen,
                plain("Cast", "chosen", "again", to=8), outputs=("again",), constants=[words])  # fmt: skip
    found = loaded(data).run({"x": X})["again"]
    assert found.tolist() == [[WORDS[i] for i in X.argmax(1)]]


def test_borders_are_kept_with_a_network(tmp_path: Path) -> None:
    net = loaded(FILES["dicts by texts"])
    wanted = net.run({"x": X})
    net.save(tmp_path / "net.pack")
    path = tmp_path / "net.onnx"
    path.write_bytes(FILES["dicts by texts"])
    rows = dnn.load_onnx(path, engine=engine())
    for other in (dnn.load_pack(tmp_path / "net.pack"), pickle.loads(pickle.dumps(net)), rows):
        found = other.run({"x": X})
        assert found["label"].tolist() == wanted["label"].tolist()
        assert found["maps"] == wanted["maps"]
        assert other.outputs == net.outputs
    with pytest.raises(InvalidArguments, match=r"output label is texts or dicts: use run\(\)"):
        net.bind(x=X, label=X, maps=X)


REFUSED = {
    "Identity 'y' reads 'words', which has elements of type string": (plain("Identity", "words", "y"), "y"),
    "Size 'y' reads 'label', which has elements of type string": (plain("Size", "label", "y"), "y"),
    "output 'words' has elements of type string": (plain("Identity", "x", "y"), "words"),
}


@pytest.mark.parametrize("said", REFUSED)
def test_texts_inside_are_refused(said: str) -> None:
    node, output = REFUSED[said]
    words = onnx.helper.make_tensor("words", onnx.TensorProto.STRING, [1], [b"no"])
    data = file(linear(classlabels_strings=WORDS), node, outputs=(output,), constants=[words])
    with pytest.raises(Unimplemented) as error:
        loaded(data)
    assert said in str(error.value)


def test_a_map_without_labels_is_said() -> None:
    with pytest.raises(InvalidArguments, match=r"ZipMap 'ZipMap' has no classlabels"):
        loaded(file(linear(classlabels_strings=WORDS), zipped(), outputs=("maps",)))
