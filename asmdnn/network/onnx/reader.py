"""From an ONNX file to a Model: everything that is claimed is checked, and nothing that the file lacks is allocated."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted, shown
from asmdnn.files import content_of
from asmdnn.jit.image_file import MAGICS
from asmdnn.memory.allocation import within_memory
from asmdnn.network.border import with_border
from asmdnn.network.element_types import element_type
from asmdnn.network.graph import NOTHING, Array, Body, Model, Node, TensorType, in_order, reads_of
from asmdnn.network.onnx.messages import Message, Messages
from asmdnn.network.onnx.tensors import MOST_DIMS, array_of, integers, numbers
from asmdnn.network.onnx.wire import LARGEST_FILE_BYTES, Malformed, NotRead, serialized
from asmdnn.network.operators.own import OWN

OPSETS = range(7, 29)
DOMAINS = ("", "ai.onnx")  # two names of the default one


def read_model(source: Any) -> Model:
    """The model in a file, in bytes, or in an onnx.ModelProto.

    Raises InvalidArguments, one sentence that names the file, for whatever is no intact model; Unimplemented for an
    operator set or types that are not read, or model-local functions.
    """
    source = serialized(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return FileReader("the model", None).model(memoryview(source).cast("B"))
    try:
        path = Path(source)
        data = content_of(path, LARGEST_FILE_BYTES)
    except OSError as error:
        raise InvalidArguments(f"{shown(str(source))} cannot be read: {error.strerror}") from None
    except (TypeError, ValueError):
        raise InvalidArguments(f"path must be that of an ONNX file, or its bytes, not {shown(source)}") from None
    return FileReader(shown(str(path)), path.parent).model(memoryview(data))


class FileReader:
    """Reads one file; `folder` is where its tensors' other files are, if there is one."""

    def __init__(self, name: str, folder: Path | None) -> None:
        self.name, self.folder = name, folder
        self.opset = 0
        self.opsets: dict[str, int] = {}

    @within_memory
    def model(self, data: memoryview) -> Model:
        if bytes(data[: len(MAGICS[0])]) in MAGICS:
            raise InvalidArguments(f"{self.name} is a pack, and no ONNX model: asmdnn.load_pack takes it")
        try:
            message = Messages().read("ModelProto", data)
            if "graph" not in message:
                raise Malformed("it has no graph")
            self.opsets = {entry.get("domain", ""): entry.get("version", 0) for entry in message.get("opsets", ())}
            self.opset = max(self.opsets.get(domain, 0) for domain in DOMAINS)
            if self.opsets and not {*DOMAINS} & self.opsets.keys():
                self.opset = OPSETS[0]  # of a file without nodes of ONNX's own
            self.check_opsets(message)
            body = self.body(message["graph"])
        except NotRead as error:
            raise Unimplemented(f"{self.name} is not read: {error}") from None
        except Malformed as error:
            raise InvalidArguments(f"{self.name} is no intact ONNX model: {error}") from None
        metadata = {entry.get("key", ""): entry.get("value", "") for entry in message.get("metadata", ())}
        return with_border(Model(body, self.opsets, message.get("producer", ""), metadata))

    def check_opsets(self, message: Message) -> None:
        if self.opset not in OPSETS:
            raise Unimplemented(
                f"{self.name} is of operator set {self.opset}, {OPSETS[0]} to {OPSETS[-1]} are read: "
                "convert it with onnx.version_converter"
            )
        if message.get("functions"):
            raise Unimplemented(f"{self.name} has functions of its own: inline them with onnx.inliner")

    def body(self, graph: Message, is_branch: bool = False) -> Body:
        """A graph; a branch may read the values around it, too."""
        name = graph.get("name", "")
        if graph.get("sparse_initializers"):
            raise Malformed(f"graph {name!r} has sparse initializers, make them dense")
        constants = {tensor.get("name", ""): self.array(tensor) for tensor in graph.get("initializers", ())}
        declared = {info.get("name", ""): self.type(info, is_branch) for info in graph.get("inputs", ())}
        inputs = {key: found for key, found in declared.items() if key not in constants}
        if NOTHING in declared or NOTHING in constants:
            raise Malformed(f"graph {name!r} has an input or an initializer without a name")
        outputs = tuple(info.get("name", "") for info in graph.get("outputs", ()))
        if NOTHING in outputs or len({*outputs}) < len(outputs):
            raise Malformed(f"graph {name!r} has an output without a name, or two of one")
        nodes = [self.node(message) for message in graph.get("nodes", ())]
        ordered = in_order(nodes, {*inputs, *constants}, is_branch)
        body = Body(name, inputs, outputs, ordered, constants)
        unknown = reads_of(body)
        if unknown and not is_branch:
            raise Malformed(f"nobody makes {shown(min(unknown))}, which the graph reads or has as an output")
        return body

    def node(self, message: Message) -> Node:
        domain = message.get("domain", "")
        pairs = [(a.get("name", ""), self.attribute(a)) for a in message.get("attributes", ())]
        inputs, outputs = (tuple(message.get(name, ())) for name in ("inputs", "outputs"))
        if not message.get("op"):
            raise Malformed(f"a node has no operator: it makes {shown(outputs)}")
        if domain == OWN:
            raise Malformed(f"a node is of the domain {OWN!r}, which is kept for what fusion makes")
        version = self.opset if domain in DOMAINS else self.opsets.get(domain, 0)
        plain = "" if domain in DOMAINS else domain
        return Node(
            message["op"],
            inputs,
            outputs,
            attributes=dict(pairs),
            name=message.get("name", ""),
            domain=plain,
            opset=version,
        )

    def attribute(self, a: Message) -> Any:
        """The value of the field that is there; of old files without a type, too."""
        if a.get("reference"):
            raise Malformed(f"attribute {a.get('name', '')!r} refers to a function's, outside of one")
        kind = a.get("type", 0)
        values: dict[int, Callable[[], Any]] = {
            1: lambda: float(a.get("f", 0.0)),
            2: lambda: int(a.get("i", 0)),
            3: lambda: text(a.get("s", b"")),
            4: lambda: self.array(a.get("t", {})),
            5: lambda: self.body(a.get("g", {}), is_branch=True),
            6: lambda: tuple(numbers(a.get("floats", ()), "<f4").astype(float).tolist()),
            7: lambda: integers(a, "ints"),
            8: lambda: tuple(text(s) for s in a.get("strings", ())),
            9: lambda: tuple(self.array(t) for t in a.get("tensors", ())),
            10: lambda: tuple(self.body(g, is_branch=True) for g in a.get("graphs", ())),
        }
        fields = ("f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs")
        if kind == 0:
            kind = next((i for i, name in enumerate(fields, 1) if name in a), 0)
        if kind not in values:
            raise Malformed(f"attribute {a.get('name', '')!r} has the type {kind}, which is not known")
        return values[kind]()

    def array(self, tensor: Message) -> Array:
        array = array_of(tensor, self.folder)
        array.setflags(write=False)
        return array

    def type(self, info: Message, is_inside: bool = False) -> TensorType:
        """Of an input; is_inside: of a body, which takes what it is given, lists too."""
        name, message = f"input {info.get('name', '')!r}", info.get("type", {})
        if is_inside and "tensor" not in message:
            return TensorType(np.dtype(np.float32), None)
        if "tensor" not in message:
            raise Malformed(f"{name} is {', '.join(message) or 'of no type'}, only tensors can be passed")
        tensor = message["tensor"]
        dtype = element_type(tensor.get("element", 0), name)
        if "shape" not in tensor:
            return TensorType(dtype, None)
        dims = tensor["shape"].get("dims", ())
        if len(dims) > MOST_DIMS:
            raise Malformed(f"{name} has {counted(len(dims), 'dim')}, at most {MOST_DIMS} are possible")
        found: list[int | str | None] = []
        for dim in dims:
            value = dim.get("value", -1)
            found.append(value if value >= 0 and not dim.get("parameter") else dim.get("parameter") or None)
        return TensorType(dtype, tuple(found))


def text(octets: memoryview | bytes) -> str:
    """An attribute's text; what is no UTF-8 keeps its bytes as surrogates."""
    return bytes(octets).decode("utf-8", "surrogateescape")
