"""`dnn.from_torch`: a module for inputs of one shape, or of any."""

from typing import Any, Literal

from asmdnn.aten.module import TorchNetwork, torch_or_refusal
from asmdnn.aten.open_module import OpenTorchNetwork
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.traced_module import traced
from asmdnn.errors import InvalidArguments, shown
from asmdnn.primitives.attributes.numbers import check_flag
from asmdnn.primitives.core.engine import Engine


def from_torch(
    module: Any,
    example_inputs: Any,
    *,
    dynamic: bool = False,
    engine: Engine | None = None,
    fallback: str | None = None,
    precision: str = "f32",
    deterministic: Literal[False, True, "batch"] = False,
) -> TorchNetwork:
    """The network of a torch module in evaluation mode, for inputs of these shapes.

    module: a torch.nn.Module.  example_inputs: a tuple of tensors, as the module is called.  The module is traced by
    torch.export, so that its control flow may not depend on data; parameters become the network's weights.  dynamic:
    take other shapes, too: the module is traced again for each, when it comes first.  fallback: "numpy" computes nodes
    without a kernel; precision, deterministic: as of load_onnx.
    Raises InvalidArguments for what is no module, or is in training mode; Unimplemented for operators that have no
    translation, with all of them, for a module that torch.export cannot trace, and where torch is not installed.
    """
    torch = torch_or_refusal()
    if not isinstance(module, torch.nn.Module):
        raise InvalidArguments(f"module must be a torch.nn.Module, not {shown(module)}")
    if module.training:
        raise InvalidArguments("the module is in training mode: call module.eval() first")
    if not isinstance(example_inputs, tuple):
        raise InvalidArguments(f"example_inputs must be a tuple of tensors, not {shown(example_inputs)}")
    check_flag("dynamic", dynamic)
    options = CompileOptions.of(engine, fallback, precision, deterministic)
    if not dynamic:
        return TorchNetwork(*traced(module, example_inputs), options, keeps=True)
    return OpenTorchNetwork(module, example_inputs, options)
