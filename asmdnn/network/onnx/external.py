"""Which files beside a model have its tensors: read of the messages alone, before anything is made of them."""

from collections.abc import Iterator

from asmdnn.network.onnx.messages import Message, Messages
from asmdnn.network.onnx.tensors import EXTERNAL


def external_files(data: bytes) -> tuple[str, ...]:
    """Their paths as the model says them, each once.  Raises Malformed for what is no model."""
    message = Messages().read("ModelProto", memoryview(data))
    return tuple(sorted({*locations(message.get("graph", {}))}))


def locations(graph: Message) -> Iterator[str]:
    """Of initialisers, and of tensors in attributes and branches."""
    attributes = [each for node in graph.get("nodes", ()) for each in node.get("attributes", ())]
    single = [each["t"] for each in attributes if "t" in each]
    several = [tensor for each in attributes for tensor in each.get("tensors", ())]
    for tensor in (*graph.get("initializers", ()), *single, *several):
        if tensor.get("data_location", 0) == EXTERNAL:
            for entry in tensor.get("external_data", ()):
                if entry.get("key") == "location":
                    yield entry.get("value", "")
    for each in attributes:
        for branch in (*([each["g"]] if "g" in each else []), *each.get("graphs", ())):
            yield from locations(branch)
