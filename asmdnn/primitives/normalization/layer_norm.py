"""The plan of a layer normalization: kernels for some rows each."""

from collections.abc import Mapping

from asmdnn.generators.functions.layer_norm import LayerNormSpec, Statistics
from asmdnn.isa.elements import narrowing_level
from asmdnn.isa.vectors import f32_level, lanes_of, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import Loop
from asmdnn.planning.move_tuning import NormalizationTuning
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan, alike
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.attributes.attr import Attr, refuse_scales
from asmdnn.primitives.attributes.chain import Chain, post_ops_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.affine import affine
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.normalization.statistics import NormRequest, ways_by_statistics
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied
from asmdnn.primitives.shapes.formats import dense_like, like, of_type, row_major
from asmdnn.primitives.shapes.nests import Nest, as_row_of, nest_of, with_last, without_last
from asmdnn.primitives.shapes.row_calls import Calls, operands_along, phases_of, row_calls, types_of, widest
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.types import DATA_TYPES, FLOAT_NAMES, f32

SRC, DST = range(2)
NATIVE = ("src", "dst")
STATISTICS = ("mean", "variance")


def inside_of(desc: LayerNormForward, attr: Attr, engine: Engine, way: str) -> Inside:
    """The plan of a layer normalization.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    isa, tuning = f32_level(engine.isa), engine.tuning
    src = like(desc.dst, desc.src)
    dst, chain = like(src, desc.dst), post_ops_of(attr)
    refuse_scales(attr)
    if chain.reads_dst:
        raise Refused("post-op sum is not implemented")
    optional = ("mean", "variance", "scale", "shift")
    extra = {name: tensor for name in optional if (tensor := getattr(desc, name)) is not None}
    extra = {name: row_major(tensor.dims, tensor) if tensor.is_any else tensor for name, tensor in extra.items()}
    passed = {"src": src, "dst": dst, **extra}
    check_tensors(passed, "dst", FLOAT_NAMES)
    passed |= chain.operands(dst, DATA_TYPES.values())
    check_tensors(passed, "dst", tuple(DATA_TYPES))
    written = () if desc.use_global_stats else tuple(name for name in STATISTICS if name in passed)
    name, outputs = f"{way}:{isa}", ("dst", *written)
    if 0 in dst.dims:
        return Inside(Assembly(tuning, isa).plan(name, passed, outputs), passed, tuning, isa)
    tensors: Mapping[str, MemoryDesc] = {n: t if n in NATIVE else of_type(t, f32) for n, t in passed.items()}
    nest = rows_of(tensors, dst)
    if nest is None:
        model = with_last(dst, (dst.ndims - 1,))
        kept = {name: row_major(tensors[name].dims, tensors[name]) for name in extra}
        others = {name: tensor for name, tensor in tensors.items() if name not in kept}
        tensors = {"src": of_type(model, src.dtype), "dst": model, **kept} | {
            name: dense_like(model, tensor) for name, tensor in others.items() if name not in ("src", "dst")
        }
        nest = rows_of(tensors, model)
        assert nest is not None, "rows along the last dim are dense"
    stored_at = narrowing_level(dst.dtype.name, engine.isa)
    calls = RowCalls(desc, chain, stored_at, tuning).calls(tensors, nest)
    costs = {spec: cost(spec, tuning.normalization) for spec in dict.fromkeys(spec for spec, *_ in calls)}
    sizes = [dtype.size_bytes for dtype in types_of(tensors)]
    phases = phases_of(calls, costs, views(tuple(tensors)), tuning.phases, sizes)
    return Inside(
        Plan(
            implementation=name,
            phases=phases,
            tensors=tensors,
            constants={},
            scratch_bytes={},
            outputs=outputs,
            in_place=alike(tensors, ["src"], "dst"),
        ),
        passed,
        tuning,
        isa,
    )


plans = ways_as_passed_or_copied(NormRequest, ways_by_statistics("layer_norm", inside_of), f32_level)


def rows_of(tensors: Mapping[str, MemoryDesc], dst: MemoryDesc) -> Nest | None:
    """The loops of all tensors along src's dims, if rows of the last one are dense, or numbers."""
    wide = []
    for name, tensor in tensors.items():
        found: MemoryDesc | None = tensor
        if name in STATISTICS:
            found = without_last(tensor)
        elif name in ("scale", "shift"):
            found = as_row_of(tensor, dst.ndims)
        if found is None:
            return None
        wide.append(found)
    nest = nest_of(wide, dst.dims, (dst.ndims - 1,), DST)
    return nest if nest is not None and nest.is_row else None


class RowCalls:
    """The calls of kernels."""

    def __init__(self, desc: LayerNormForward, chain: Chain, isa: str, tuning: Tuning) -> None:
        self.desc, self.chain, self.isa, self.tuning = desc, chain, isa, tuning

    def calls(self, tensors: Mapping[str, MemoryDesc], nest: Nest) -> Calls[LayerNormSpec]:
        row = nest.row
        rows_of_calls = row_calls(nest, row.extent, self.tuning.elementwise, widest(tensors))
        return [(self.spec(tensors, row, rows), box, outer) for box, rows, outer in rows_of_calls]

    def spec(self, tensors: Mapping[str, MemoryDesc], row: Loop, rows: Loop) -> LayerNormSpec:
        desc, operands = self.desc, operands_along(tensors, row, rows)
        after = (*affine(operands.get("scale"), operands.get("shift")), *self.chain.on_registers(operands))
        statistics = None
        if desc.variance is not None:
            mean = operands["mean"].row_bytes if desc.mean is not None else None
            statistics = Statistics(mean, operands["variance"].row_bytes, desc.use_global_stats)
        types = types_of(tensors)
        strides_bytes = rows.strides_of(types)
        aligned = rows.extent == 1 or strides_bytes[DST] % vector_bytes(self.isa) == 0
        is_large = tensors["src"].size_bytes + tensors["dst"].size_bytes >= self.tuning.elementwise.streaming_bytes
        streams = aligned and is_large and types[SRC] == types[DST] == f32
        return LayerNormSpec(
            isa=self.isa,
            rows=rows.extent,
            elements=row.extent,
            src_row_bytes=strides_bytes[SRC],
            dst_row_bytes=strides_bytes[DST],
            epsilon=desc.epsilon,
            centred=not desc.rms,
            statistics=statistics,
            after=after,
            streams=streams,
            types=(types[SRC].name, types[DST].name),
        )


def cost(spec: LayerNormSpec, tuning: NormalizationTuning) -> int:
    """Expected cycles."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    return tuning.call_cycles + spec.rows * (tuning.row_cycles + vectors * tuning.vector_cycles)
