"""What the plans of a model for several shapes share."""

from asmdnn.network.remembered import Remembered
from asmdnn.network.template.store import Templates
from asmdnn.network.weights import WeightPool
from asmdnn.records import dataclass, field


@dataclass(frozen=True, eq=False)
class SharedByShapes:
    """pool: of packed weights; remembered: what planning has found out that holds for every shape; templates: what
    lowering has decided."""

    pool: WeightPool = field(default_factory=WeightPool)
    remembered: Remembered = field(default_factory=Remembered)
    templates: Templates = field(default_factory=Templates)
