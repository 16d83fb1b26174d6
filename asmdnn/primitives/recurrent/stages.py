"""The stages of a time step: which cell follows which product."""

from collections.abc import Iterator

from asmdnn.generators.recurrent.cells import Cell
from asmdnn.primitives.recurrent.description import (
    GRUForward,
    LBRGRUForward,
    LSTMForward,
    QuantizedRecurrent,
    RecurrentForward,
    VanillaRNNForward,
)
from asmdnn.primitives.recurrent.qparams import is_dynamic
from asmdnn.records import dataclass
from asmdnn.types import s8


@dataclass(frozen=True, slots=True)
class Multiplied:
    """A cell and the product in front of it: rows `src` times `weights`, from a gate on; "" where src is zero."""

    cell: Cell
    src: str
    weights: str = "weights_iter"
    gate: int = 0


def stages_of(desc: RecurrentForward, starts: bool) -> Iterator[Multiplied]:
    """The stages of a step, of sequences that start at it or that have come from another one."""
    goes_on, keeps = not starts or desc.src_iter is not None, desc.is_training
    data = bytes_of(desc)
    dynamic = is_dynamic(desc)
    has_bias = (dynamic or bool(data)) and desc.bias is not None
    h = "h" if goes_on else ""
    if isinstance(desc, VanillaRNNForward):
        yield Multiplied(Cell("vanilla", activation=desc.activation, alpha=float(desc.alpha)), h)
    elif isinstance(desc, LSTMForward):
        peephole = desc.weights_peephole is not None
        has_c = not starts or desc.src_iter_c is not None
        cell = Cell("lstm", has_c, has_bias, peephole=peephole, keeps=keeps, data=data, dynamic=dynamic)
        yield Multiplied(cell, h)
        if desc.weights_projection is not None:
            yield Multiplied(Cell("projection"), "unprojected", "weights_projection")
    elif isinstance(desc, LBRGRUForward):
        yield Multiplied(Cell("lbr_gru", goes_on, has_bias=desc.bias is not None, keeps=keeps), h)
    elif isinstance(desc, GRUForward) and goes_on:
        yield Multiplied(Cell("gru_gates", keeps=keeps, data=data, has_bias=has_bias), h)
        yield Multiplied(Cell("gru_candidate", keeps=keeps, data=data, has_bias=has_bias), "reset", gate=2)
    else:
        yield Multiplied(Cell("gru_first", keeps=keeps), "")


def bytes_of(desc: RecurrentForward) -> tuple[float, ...]:
    """Scale and shift of rows of bytes, if weights are s8."""
    if desc.weights_layer.dtype != s8 or not isinstance(desc, QuantizedRecurrent):
        return ()
    return desc.rnn_data_qparams
