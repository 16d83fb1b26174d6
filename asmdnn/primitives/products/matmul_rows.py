"""Matrix products whose number of rows is known only when they run: one object, one format of weights, many row counts.

A plan is made when a row count comes for the first time (some 0.2 ms), and kept.  It consists of kernels that exist:
tiles have 1 to 6 rows (24 under AVX-512), and a sample of row counts at creation meets every kind of tile.
"""

from functools import lru_cache

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.descriptor import PrimitiveDesc, primitive_desc
from asmdnn.primitives.core.engine import Engine, Stream, engine_or_default
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.runtime.kernels import kernel_cache

KEPT_ROW_COUNTS = 1024
SAMPLED_ROWS = (*range(1, 81), 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 4096)


class MatMulRows:
    """dst[m, n] = bias[n] + sum over k of src[m, k] * weights[k, n], for any m >= 0.

    weights: f32 (k, n), in any format that MatMul takes, best "any"; bias: f32 (1, n) or None.  src and dst are
    row-major.  Creation generates all kernels, so that no row count makes another one.  Raises InvalidArguments, and
    Unimplemented if this machine cannot execute the engine's level.
    """

    def __init__(
        self,
        weights: MemoryDesc,
        bias: MemoryDesc | None = None,
        attr: Attr = NO_ATTR,
        engine: Engine | None = None,
    ) -> None:
        if not isinstance(weights, MemoryDesc) or weights.ndims != 2:
            raise InvalidArguments(f"weights must be a MemoryDesc of 2 dims, not {shown(weights)}")
        if bias is not None and (not isinstance(bias, MemoryDesc) or bias.dims != (1, weights.dims[1])):
            raise InvalidArguments(f"bias must be a MemoryDesc of dims (1, {weights.dims[1]}), not {shown(bias)}")
        self._weights, self._bias, self._attr, self._engine = weights, bias, attr, engine_or_default(engine)
        self.weights_desc: MemoryDesc = self.primitive_desc(1).plan.tensors["weights"]
        self._weights = self.weights_desc
        specs = dict.fromkeys(spec for m in SAMPLED_ROWS for spec in self.primitive_desc(m).plan.specs)
        self._kernels = kernel_cache().load(list(specs))  # held, so that no row count has to load one
        self._primitive = lru_cache(KEPT_ROW_COUNTS)(lambda m: Primitive(self.primitive_desc(m)))

    def primitive_desc(self, rows: int) -> PrimitiveDesc:
        """What a product of so many rows is made of."""
        k, n = self._weights.dims
        src, dst = (MemoryDesc((rows, size), self._weights.dtype, LETTERS[:2]) for size in (k, n))
        return primitive_desc(MatMul(src, self._weights, dst, self._bias), self._attr, self._engine)

    def execute(self, stream: Stream | None = None, scratchpad: Memory | None = None, **memories: Memory) -> None:
        """Run on as many rows as `src` has; see Primitive.execute."""
        src = memories.get("src")
        if not isinstance(src, Memory) or src.desc.ndims != 2:
            raise InvalidArguments(f"src must be a Memory of 2 dims, not {shown(src)}")
        self._primitive(src.desc.dims[0]).execute(stream, scratchpad, **memories)
