"""`quantize`: a model with weights of 8 bits, as an ONNX file for any runtime, and how far it is from f32."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.files import replace_file
from asmdnn.memory.allocation import within_memory
from asmdnn.network.accuracy import share
from asmdnn.network.graph import TensorType
from asmdnn.network.narrowing import check_kept
from asmdnn.network.network import Network
from asmdnn.network.onnx.reader import DOMAINS, read_model
from asmdnn.network.onnx.writer import model_bytes
from asmdnn.network.open import network_of
from asmdnn.network.quantised.rewriting import KINDS, quantized
from asmdnn.network.storage import precision_of
from asmdnn.primitives.core.engine import Engine, engine_or_default

OLDEST_OPSET = 13  # in which DequantizeLinear has a scale for each channel


@dataclass(frozen=True, eq=False)
class QuantizedModel:
    """data: the ONNX file; network: what it is here; nodes: those whose weights became bytes; errors: by output, the
    largest difference to f32 for the feeds, over its largest value; file_bytes: before and after."""

    data: bytes
    network: Network
    nodes: tuple[str, ...]
    errors: Mapping[str, float]
    file_bytes: tuple[int, int]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file.  Raises InvalidArguments if it cannot be written."""
        try:
            replace_file(path, self.data)  # type: ignore[arg-type]
        except OSError as error:
            raise InvalidArguments(f"{shown(str(path))} cannot be written: {error.strerror}") from None
        except (TypeError, ValueError):
            raise InvalidArguments(f"path must be that of a file, not {shown(path)}") from None

    def __str__(self) -> str:
        before, after = self.file_bytes
        worst_first = sorted(self.errors.items(), key=lambda pair: -pair[1])
        lines = [f"  {name}: {error:.1e} of its largest value from f32" for name, error in worst_first]
        return "\n".join([f"{len(self.nodes)} nodes with weights of 8 bits, {before} bytes became {after}", *lines])


@within_memory
def quantize(
    source: str | PathLike[str] | bytes | Network,
    feeds: Mapping[str, Any],
    method: str = "dynamic",
    *,
    keep_f32: Sequence[str] = (),
    engine: Engine | None = None,
) -> QuantizedModel:
    """A model whose products have weights of 8 bits: s8 by output channel, symmetric.

    source: an ONNX file of operator set 13 or later, its bytes, or a network of `Graph.compile`.  feeds: inputs by
    name, for which both are run and compared.  method: "dynamic" also rounds what MatMul and Gemm multiply to u8, by
    the range of the data at hand, and multiplies integers; "weights" computes in f32 with weights of MatMul, Gemm and
    Conv that take a quarter of the file.  keep_f32: names of nodes, or of their results, that stay as they are.
    Raises InvalidArguments, also if no node has such weights or the model cannot be written; Unimplemented.
    """
    if not isinstance(method, str) or method not in KINDS:
        raise InvalidArguments(f"method must be one of {', '.join(KINDS)}, not {shown(method)}")
    model = source.model if isinstance(source, Network) else read_model(source)
    opset = max(model.opsets.get(domain, 0) for domain in DOMAINS)
    if opset < OLDEST_OPSET:
        raise InvalidArguments(
            f"the model is of operator set {opset}, {OLDEST_OPSET} is the oldest that is quantised: convert it with "
            "onnx.version_converter"
        )
    kept = precision_of("f32", keep_f32)
    check_kept(model, kept)
    made, nodes = quantized(model, opset, method, kept.keep_f32)
    if not nodes:
        raise InvalidArguments(f"no node can be quantised: {', '.join(KINDS[method])} with constant weights of f32 are")
    engine = engine_or_default(engine)
    wide = network_of(model, None, None, engine, "numpy")
    wanted = wide.run(feeds)
    types = {name: TensorType(dtype, (None,) * len(dims)) for name, (dims, dtype) in wide.outputs.items()}
    before, data = model_bytes(model, types), model_bytes(made, types)
    net = network_of(read_model(data), None, None, engine, "numpy")
    errors = {name: share(array, wanted[name]) for name, array in net.run(feeds).items()}
    return QuantizedModel(data, net, nodes, errors, (len(before), len(data)))
