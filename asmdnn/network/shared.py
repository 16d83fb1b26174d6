"""What the plans of a model for several shapes share."""

from asmdnn.network.folding.remembered import Remembered
from asmdnn.network.joining.weights import WeightPool
from asmdnn.network.template.store import Templates
from asmdnn.records import dataclass, field


@dataclass(frozen=True, eq=False)
class SharedByShapes:
    """pool: of packed weights; remembered: what planning has found out that holds for every shape; of_inputs,
    of_graphs: what has been decided on the way from inputs to primitives, and from a folded graph on."""

    pool: WeightPool = field(default_factory=WeightPool)
    remembered: Remembered = field(default_factory=Remembered)
    of_inputs: Templates = field(default_factory=Templates)
    of_graphs: Templates = field(default_factory=Templates)
