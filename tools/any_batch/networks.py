"""The networks of docs/networks.md for any batch: published files, modules of torch, graphs of the onnx package."""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

import numpy as np

import asmdnn as dnn
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.traced_module import State, TracedModule, traced
from examples import models
from tools.torch_models.models import first_result, load_torchvision, of_transformers

MOST: Final = 64  # items
Array = np.ndarray[Any, Any]
OfBatch = Callable[[int, dnn.Engine], dnn.Network]
Items = tuple[OfBatch, list[Array]]  # the network for a batch; MOST items of each input, in the order of its inputs

SMALL: Final = {"hidden_size": 192, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 768}
SEED: Final = 5


def of_file(package: str, ending: str, *items: tuple[int, ...], types: Any = np.float32, inputs: str = "x") -> Items:
    """A published file; items: dims of one item of each input.  Integers are from 0 to 99."""
    names = inputs.split()

    def of_batch(batch: int, engine: dnn.Engine) -> dnn.Network:
        shapes = {name: (batch, *dims) for name, dims in zip(names, items, strict=True)}
        return dnn.load_onnx(models.file(package, ending), shapes, engine=engine)

    return of_batch, [filled((MOST, *dims), types) for dims in items]


def of_onnx(name: str) -> Items:
    """A graph of the onnx package, with random weights and an open batch."""
    import onnx

    from tests.network.test_models import FOLDER, with_random_weights

    model = onnx.load_from_string(with_random_weights(FOLDER / f"light_{name}.onnx"))
    constants = {tensor.name for tensor in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in constants]
    dims = [d.dim_value for d in given[0].type.tensor_type.shape.dim][1:]
    for value in (*given, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    open_reshapes(model.graph)
    data = model.SerializeToString()

    def of_batch(batch: int, engine: dnn.Engine) -> dnn.Network:
        return dnn.load_onnx(data, {given[0].name: (batch, *dims)}, engine=engine)

    return of_batch, [filled((MOST, *dims), np.float32)]


def open_reshapes(graph: Any) -> None:
    """Shapes of Reshape that begin with a batch of 1 keep the batch instead."""
    import onnx

    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in shapes:
            values = onnx.numpy_helper.to_array(tensor).copy()
            values[0] = 0 if values[0] == 1 else values[0]
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def of_torch(made: Callable[[], tuple[Any, tuple[Any, ...]]]) -> Items:
    """A module of torch, traced for each batch, once for engines in turn."""
    import torch

    torch.manual_seed(SEED)
    with torch.no_grad():
        module, (example,) = made()
        module.eval()
    integers = not example.is_floating_point()
    item = tuple(example.shape[1:])
    data = filled((MOST, *item), np.int64 if integers else np.float32)

    @lru_cache(maxsize=1)
    def traced_for(batch: int) -> tuple[TracedModule, State]:
        return traced(module, (torch.from_numpy(data[:batch]),))

    def of_batch(batch: int, engine: dnn.Engine) -> dnn.Network:
        graph, state = traced_for(batch)
        return graph.network(state, CompileOptions.of(engine))[0]

    return of_batch, [data]


def filled(dims: tuple[int, ...], dtype: Any) -> Array:
    random = np.random.default_rng(SEED)
    if np.dtype(dtype).kind == "i":
        return random.integers(0, 100, dims).astype(dtype)
    return random.standard_normal(dims).astype(dtype)


def vision(name: str, size: int = 224, **settings: Any) -> Items:
    """Of torchvision; of what gives several results the first is taken."""

    def made() -> tuple[Any, tuple[Any, ...]]:
        load_torchvision()
        import torch

        torchvision = import_module("torchvision")
        family = torchvision.models.segmentation if settings.pop("segments", False) else torchvision.models
        return getattr(family, name)(weights=None, **settings), (torch.randn(1, 3, size, size),)

    return of_torch(made)


def recurrent(cell: str, **settings: Any) -> Items:
    """Two layers of 40 to 64 numbers over 25 steps."""

    def made() -> tuple[Any, tuple[Any, ...]]:
        import torch

        class Sequences(torch.nn.Module):  # type: ignore[misc, unused-ignore]
            def __init__(self) -> None:
                super().__init__()
                self.layers = getattr(torch.nn, cell)(40, 64, 2, batch_first=True, **settings)

            def forward(self, x: Any) -> Any:
                return self.layers(x)[0]

        return Sequences(), (torch.randn(1, 25, 40),)

    return of_torch(made)


def encoder() -> tuple[Any, tuple[Any, ...]]:
    import torch

    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 2), (torch.randn(1, 16, 64),)


def unet() -> tuple[Any, tuple[Any, ...]]:
    import torch

    from tests.aten.modules import UNet

    return UNet(), (torch.randn(1, 3, 128, 128),)


def text(family: str, model: str, length: int = 34, **settings: Any) -> Items:
    return of_torch(lambda: of_transformers(f"{family}Config", model, length, **settings))


def floats(family: str, model: str, *item: int, **settings: Any) -> Items:
    """Of transformers, with floats as input."""

    def made() -> tuple[Any, tuple[Any, ...]]:
        load_torchvision()
        import torch
        import transformers

        config = getattr(transformers, f"{family}Config")(**settings)
        module = import_module(f"transformers.models.{family.lower()}.modeling_{family.lower()}")
        return first_result(getattr(module, model)(config)), (torch.randn(1, *item),)

    return of_torch(made)
