"""`deterministic="batch"`: bits of a row or an image that depend on neither its neighbours nor their number.

Every sum is then taken in one order, which is the same for any number of rows.  An engine that asks for it has a tuning
by which no product is split by that number; kinds say what else would differ, and refuse it.
"""

from collections.abc import Callable

from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.description import Description, every_tensor
from asmdnn.primitives.core.engine import BATCH, Engine
from asmdnn.records import replace
from asmdnn.types import CODED_FLOATS, FLOATS, INTEGERS8, f32, s4, u4

UNPACKED = (*INTEGERS8, s4, u4, *CODED_FLOATS)  # weights that become f32 in kernels or before


def refused(desc: object, attr: Attr) -> str:
    """Of kinds whose results are sums over a batch, or that were not looked at."""
    return f"{type(desc).__name__} has no plans for deterministic='batch': leave it out"


def by_rows(desc: object, attr: Attr) -> str:
    """Of kinds whose plans compute every row or image in one order, whatever is beside it."""
    return ""


def items_alone(*sums: str) -> Callable[[Description, Attr], str]:
    """Of kinds that compute every item in one order, but for results of these names, which are sums over all items."""

    def reason(desc: Description, attr: Attr) -> str:
        asked = [name for name in sums if name in dict(every_tensor(desc))]
        return f"{asked[0]} is a sum over all items: leave it out, or deterministic='batch'" if asked else ""

    return reason


def of_products(desc: Description, attr: Attr) -> str:
    """Of kinds that multiply src and weights: of one type, or bytes, whose sums are exact in any order, or floats with
    integers that become f32."""
    types = dict(every_tensor(desc))
    src, weights = types["src"].dtype, types["weights"].dtype
    if (src == weights and src in FLOATS) or (src in INTEGERS8 and weights in INTEGERS8 and not attr.groups):
        return ""
    if src in FLOATS and weights in UNPACKED:
        return ""
    groups = " with scales of groups" if attr.groups else ""
    return f"src is {src}, weights {weights}{groups}: deterministic='batch' takes floats of one type, or bytes"


def of_f32(first: str, second: str) -> Callable[[Description, Attr], str]:
    """Of other products, of factors with these names."""

    def reason(desc: Description, attr: Attr) -> str:
        types = dict(every_tensor(desc))
        other = [name for name in (first, second) if types[name].dtype != f32]
        return f"{other[0]} is {types[other[0]].dtype}: deterministic='batch' takes f32 here" if other else ""

    return reason


def of_sequences(desc: Description, attr: Attr) -> str:
    """Of recurrent layers: of any types, but not with rows that are rounded by the range of all sequences."""
    name = "weights_layer_scales"
    if name not in dict(every_tensor(desc)):
        return ""
    why = f"{name} is given, by which rows are rounded in the range of all sequences"
    return f"{why}: with deterministic='batch' say what bytes stand for by rnn_data_qparams"


def engine_for(attr: Attr, engine: Engine) -> Engine:
    """The engine that planners get: one that asks for what the attributes ask for."""
    return replace(engine, deterministic=BATCH) if attr.deterministic == BATCH and not engine.any_batch else engine


def attr_for(attr: Attr, engine: Engine) -> Attr:
    """The attributes that planners get: they ask for what the engine asks for.  Raises InvalidArguments."""
    return attr.changed(deterministic=BATCH) if engine.any_batch and attr.deterministic != BATCH else attr
