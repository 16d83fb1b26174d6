"""`quantize`: a model of 8 bits, as an ONNX file for any runtime, and how far it is from f32."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from asmdnn.errors import InvalidArguments, not_one_of, shown
from asmdnn.files import replace_file
from asmdnn.memory.allocation import within_memory
from asmdnn.memory.sequences import items
from asmdnn.network.declaring import check_kept
from asmdnn.network.graph import Model, TensorType
from asmdnn.network.narrow.storage import limit_of, precision_of
from asmdnn.network.network import Network
from asmdnn.network.of_model import network_of
from asmdnn.network.onnx.reader import DOMAINS, read_model
from asmdnn.network.onnx.writer import model_bytes
from asmdnn.network.quantized.rewriting import KINDS, MOST, REDUCED, quantized
from asmdnn.network.static_qdq.ranges import Calibration
from asmdnn.network.static_quantization import Feeds, StaticModel, StaticQuantizer, worst_errors
from asmdnn.primitives.core.engine import Engine, engine_or_default
from asmdnn.records import dataclass, field

OLDEST_OPSET = 13  # in which DequantizeLinear has a scale for each channel
STATIC = "static"
PRODUCTS = {**KINDS, STATIC: KINDS["weights"]}


@dataclass(frozen=True, eq=False)
class QuantizedModel:
    """data: the ONNX file; network: what it is here; nodes: those whose weights became bytes; errors: by output, the
    largest difference to f32 for the feeds, over its largest value; file_bytes: before and after.  Of method "static"
    steps: what rounding does to each of the nodes by itself, as root mean squares, a share of the result's; and
    kept_f32: nodes that max_error left as they are."""

    data: bytes
    network: Network
    nodes: tuple[str, ...]
    errors: Mapping[str, float]
    file_bytes: tuple[int, int]
    steps: Mapping[str, float] = field(default_factory=dict)
    kept_f32: tuple[str, ...] = ()

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
        ends = [f"  {name}: {error:.1e} of its largest value from f32" for name, error in largest_first(self.errors)]
        steps = [f"  {name}: {error:.1e} of its size by itself" for name, error in largest_first(self.steps)]
        kept = [f"f32 for max_error: {', '.join(self.kept_f32)}"] if self.kept_f32 else []
        first = f"{len(self.nodes)} nodes with weights of 8 bits, {before} bytes became {after}"
        return "\n".join([first, *ends, *kept, *steps])


def largest_first(errors: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(errors.items(), key=lambda pair: -pair[1])


@within_memory
def quantize(
    source: str | PathLike[str] | bytes | Network,
    feeds: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    method: str = "dynamic",
    *,
    keep_f32: Sequence[str] = (),
    max_error: float | None = None,
    calibration: Calibration | None = None,
    reduce_range: bool = False,
    engine: Engine | None = None,
) -> QuantizedModel:
    """A model whose products have weights of 8 bits: s8 by output channel, symmetric.

    source: an ONNX file of operator set 13 or later, its bytes, or a network of `Graph.compile`.  feeds: inputs by
    name, or several of them, for which both are run and compared.  method: "dynamic" also rounds what MatMul and Gemm
    multiply to u8, by the range of the data at hand, and multiplies integers; "weights" computes in f32 with weights of
    MatMul, Gemm and Conv that take a quarter of the file; "static" stores values between them as bytes, too, in ranges
    that the feeds show, of any operator set.  keep_f32: names of nodes, or of their results, that stay as they are.
    max_error: of "static": keep more in f32, largest error first, until outputs for the feeds are within this share of
    their largest value of f32's.  calibration: of "static": how ranges are chosen.
    reduce_range: weights have 64 steps instead of 127, for onnxruntime on CPUs without VNNI: it adds products of bytes
    in pairs of 16 bits there, which saturate.  Sums are exact here, on every CPU.
    Raises InvalidArguments, also if no node has such weights or the model cannot be written; Unimplemented.
    """
    check_words(method, max_error, calibration, reduce_range)
    most = REDUCED if reduce_range else MOST
    several, limit = several_feeds(feeds), limit_of(max_error, None if max_error is None else {})
    model = source.model if isinstance(source, Network) else read_model(source)
    opset = opset_of(model, method)
    kept = precision_of("f32", keep_f32)
    check_kept(model, kept)
    engine = engine_or_default(engine)
    wide = network_of(model, None, None, engine, "numpy")
    wanted = [wide.run(one) for one in several]
    if method == STATIC:
        quantizer = StaticQuantizer(
            model, opset, several, keep_f32=kept.keep_f32, calibration=calibration or Calibration(), most=most,
            engine=engine,
        )  # fmt: skip
        made = quantizer.within(limit.most, wanted) if limit else quantizer.quantized()
    else:
        made = StaticModel(*quantized(model, opset, method, kept.keep_f32, most), {})
    if not made.nodes:
        raise InvalidArguments(
            f"no node can be quantised: {', '.join(PRODUCTS[method])} with constant weights of f32 are"
        )
    types = {name: TensorType(dtype, (None,) * len(dims)) for name, (dims, dtype) in wide.outputs.items()}
    return compared(model, made, types, several, wanted, engine)


def opset_of(model: Model, method: str) -> int:
    """Raises InvalidArguments for one whose operators have no such numbers."""
    opset = max(model.opsets.get(domain, 0) for domain in DOMAINS)
    if opset < OLDEST_OPSET and method != STATIC:
        raise InvalidArguments(
            f"the model is of operator set {opset}, {OLDEST_OPSET} is the oldest that is quantised: convert it with "
            'onnx.version_converter, or say method="static"'
        )
    return opset


def check_words(method: Any, max_error: Any, calibration: Any, reduce_range: Any) -> None:
    """Raise InvalidArguments for what is not known, or is of another method."""
    if not isinstance(method, str) or method not in PRODUCTS:
        raise InvalidArguments(not_one_of("method", method, PRODUCTS))
    if method != STATIC and (max_error is not None or calibration is not None):
        raise InvalidArguments(f'max_error and calibration are of method="static", not of {method}')
    if not isinstance(calibration, Calibration | None):
        raise InvalidArguments(f"calibration must be a Calibration, not {shown(calibration)}")
    if not isinstance(reduce_range, bool):
        raise InvalidArguments(f"reduce_range must be True or False, not {shown(reduce_range)}")


def several_feeds(feeds: Any) -> Feeds:
    """Raises InvalidArguments for nothing."""
    if isinstance(feeds, Mapping):
        return [feeds]
    try:
        several = items(feeds)
    except Exception:  # whatever the caller's object does
        several = ()
    if not several or not all(isinstance(one, Mapping) for one in several):
        raise InvalidArguments(f"feeds must be inputs by name, or several of them, not {shown(feeds)}")
    return tuple(several)


def compared(
    model: Model,
    made: StaticModel,
    types: Mapping[str, TensorType],
    feeds: Feeds,
    wanted: Sequence[Mapping[str, Any]],
    engine: Engine,
) -> QuantizedModel:
    """The file that is written, read again, and run."""
    before, data = model_bytes(model, types), model_bytes(made.model, types)
    net = network_of(read_model(data), None, None, engine, "numpy")
    errors = worst_errors([net.run(one) for one in feeds], wanted)
    sizes = len(before), len(data)
    return QuantizedModel(data, net, made.nodes, errors, sizes, steps=made.steps, kept_f32=made.kept)
