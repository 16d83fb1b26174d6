"""What multiplies the products of a plan that has other steps between them."""

from collections.abc import Iterable

from asmdnn.isa.dot import Types
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import level_of_tiles
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import NO_EPILOGUE, Epilogue, target_of
from asmdnn.records import replace


class Multiplier:
    """Vectors, and tiles of AMX where they take a product.  types: of factors.  target: that of vectors; amx: of tiles,
    None where no tiles multiply these types."""

    def __init__(self, engine: Engine, types: Types) -> None:
        self.types, self.target = types, target_of(engine, types=types)
        self.amx = target_of(engine, types=types, tiled=True) if level_of_tiles(types, engine) else None

    def add(self, assembly: Assembly, product: Product, epilogue: Epilogue = NO_EPILOGUE) -> None:
        """The phases of a product of these types."""
        amx = self.amx and replace(self.amx, epilogue=epilogue)
        multiply(assembly, product, replace(self.target, epilogue=epilogue), amx)

    def implementation(self, way: str, phases: Iterable[Phase]) -> str:
        """The name of a plan of these phases, which says whether tiles multiply."""
        if self.amx and any(spec.isa == self.amx.isa for phase in phases for spec in phase.kernels):
            return f"{way}+amx:{self.amx.isa}"
        return f"{way}:{self.target.isa}"
