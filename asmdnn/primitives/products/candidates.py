"""Plans of a product that planners would choose by other numbers: to measure how good their choice is."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from asmdnn.planning.plan import Plan
from asmdnn.planning.product_tuning import ByDistance, ProductTuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Planner, try_all
from asmdnn.records import replace

NEVER: Final = ByDistance(1 << 30, 1 << 30, 1 << 30)
ALWAYS: Final = ByDistance(1, 1, 1)
# Numbers with which planners take a way for plain weights wherever they can.
WAYS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "packed": {"pack_tiles": ALWAYS, "block_tiles": NEVER, "few_vectors": 1},
        "packed in blocks": {"block_tiles": ALWAYS, "block_rows": NEVER, "few_vectors": 1},
        "where they lie": {"pack_tiles": NEVER, "block_tiles": NEVER, "few_vectors": 1},
        "whole rows": {"few_vectors": 8},
    }
)


def by_other_numbers(planner: Planner[Any], desc: Any, attr: Attr, engine: Engine) -> Iterator[tuple[str, Plan]]:
    """What a planner's strategies make with the numbers of every way, but for what they have made with the engine's."""
    own = try_all((planner,), desc, attr, engine)
    found = {answer.implementation for answer in own if isinstance(answer, Plan)}
    for way, numbers in WAYS.items():
        products: ProductTuning = replace(engine.tuning.products, **numbers)
        other = replace(engine, tuning=replace(engine.tuning, products=products))
        for answer in try_all((planner,), desc, attr, other):
            if isinstance(answer, Plan) and answer.implementation not in found:
                found.add(answer.implementation)
                yield f"weights {way}", answer
