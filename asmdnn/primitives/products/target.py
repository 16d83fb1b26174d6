"""What a product is planned for: the ISA level, the cache, and the epilogue of its sums."""

from collections.abc import Sequence

from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.generators.functions.postops import Operand, PostOp
from asmdnn.isa.dot import F32, Types, dot_class, dot_level
from asmdnn.isa.tiles import tile_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.attributes.chain import NO_CHAIN, Chain
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matrices import Matrix
from asmdnn.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What is done to the sums before they are stored: post-ops, or the scales of gemm (`beta`: as in Gemm)."""

    chain: Chain = NO_CHAIN
    scaled: bool = False
    beta: str = "zero"

    @property
    def is_plain(self) -> bool:
        """Whether the sums are the result."""
        return self == NO_EPILOGUE

    @property
    def may_split(self) -> bool:
        """Whether dst may hold partial sums."""
        return self.chain.may_split

    @property
    def reads_dst(self) -> bool:
        return self.beta != "zero" or self.chain.reads_dst

    def on_registers(self, matrices: Sequence[Matrix], lanes: int) -> tuple[PostOp, ...]:
        """The post-ops on registers, whose operands are `matrices`: columns dense, or one for all."""
        operands = [
            Operand(number, x.row_bytes, x.element_bytes * lanes if x.column_bytes else 0, not x.column_bytes)
            for number, x in enumerate(matrices, len(ARGUMENTS))
        ]
        return self.chain.on_registers(dict(zip(self.chain.names, operands, strict=True)))


NO_EPILOGUE = Epilogue()


@dataclass(frozen=True, slots=True)
class Target:
    """isa: the level of the kernels, and lanes its f32 elements in a vector; l2_bytes: of a thread; tuning: of all.

    tiled: whether tiles of AMX multiply, else vectors.
    """

    isa: str
    l2_bytes: int
    tuning: Tuning
    epilogue: Epilogue = NO_EPILOGUE
    tiled: bool = False
    lanes: int = field(init=False)
    products: ProductTuning = field(init=False, compare=False, repr=False)
    call_cycles: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lanes", lanes_of(self.isa))
        object.__setattr__(self, "products", self.tuning.products)
        object.__setattr__(self, "call_cycles", self.tuning.phases.call_cycles)

    def of_vectors(self, isa: str) -> "Target":
        """The same for vectors of a level."""
        return replace(self, isa=isa, tiled=False)

    def step_cycles(self, rows: int, vectors: int, types: Types) -> float:
        """Cycles for one step of k of a block of accumulators."""
        return step_cycles(rows, vectors, self.lanes, self.tuning.phases, dot_class(types, self.isa))


def target_of(engine: Engine, epilogue: Epilogue = NO_EPILOGUE, types: Types = F32, tiled: bool = False) -> Target:
    """What an engine's products are planned for.  tiled: by tiles, which its level has."""
    isa = (tile_level(types, engine.isa) if tiled else None) or dot_level(types, engine.isa)
    return Target(isa, engine.l2_bytes, engine.tuning, epilogue, tiled)
