"""What a product of arrays is asked to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asmdnn.primitives.attributes.attr import AnyPostOp
from asmdnn.primitives.engine import Engine
from asmdnn.types import DataType


@dataclass(frozen=True, slots=True)
class ProductRequest:
    """What a product is asked to do beside multiplying; see `matmul`."""

    post_ops: Sequence[AnyPostOp]
    dtype: DataType | None
    scales: Mapping[str, Any]
    zero_points: Mapping[str, Any]
    engine: Engine | None
