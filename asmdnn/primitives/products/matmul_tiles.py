"""Matrix products by tiles: formats that are `any` resolved, descriptors turned into strides."""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from math import prod

from asmdnn.errors import Unimplemented
from asmdnn.forking import importing
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import Types, dot_class, dot_level, multiplied, unshifted_level
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.memory.summed import SummedDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import level_of_tiles
from asmdnn.primitives.products.blocks import panel_vectors
from asmdnn.primitives.products.dots import are_few, takes_rows
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.matrices import PANEL_VECTORS, Matrix, Panels, WeightsPanels, matrix_of, panels_of
from asmdnn.primitives.products.plan import Job, answers, refusals
from asmdnn.primitives.products.product import TILE_ROWS, Product
from asmdnn.primitives.products.starts import ZERO_POINT, add_start
from asmdnn.primitives.products.strategies import STRATEGIES, TILE_STRATEGIES
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import replace
from asmdnn.types import HALF_FLOATS, DataType, f32, s8, s32

FEW_ROWS = 2  # of s8 and plain weights are multiplied as words, for which nothing is added up


def plan(
    desc: MatMul, attr: Attr, engine: Engine, types: Types | None = None, *, only_amx: bool = False
) -> Iterator[Plan | Refusal]:
    """What every strategy says to a product: those of tiles of AMX, where there are any, then those of vectors.

    types: of factors and sums; None: what the level multiplies of these tensors.  only_amx: not those of vectors."""
    try:
        check_elements(desc.weights)
        types = types or types_of(desc, attr, engine)
    except (Unimplemented, Refused) as reason:
        yield from refusals(f32_level(engine.isa), str(reason))
        return
    if types.run:
        attr = attr.changed(accumulation_mode="any")  # sums are of the type that was asked for
    for tiled in (True,) if only_amx else (True, False):
        level = level_of_tiles(types, engine) if tiled else dot_level(types, engine.isa)
        if level:
            job = partial(job_of, desc, attr, engine, types, tiled)
            yield from answers(job, level, TILE_STRATEGIES if tiled else STRATEGIES)


def types_of(desc: MatMul, attr: Attr, engine: Engine) -> Types:
    """What the level multiplies of these tensors, fastest.  Raises Unimplemented."""
    if attr.accumulation_mode != "strict" and desc.src.dtype in HALF_FLOATS:
        with importing():
            from asmdnn.primitives.products.run_sums import types_of_runs

        if runs := types_of_runs(desc, attr, engine):
            return runs
    types = multiplied(desc.src.dtype, desc.weights.dtype, engine.isa)
    if types.sums != s32:
        return types
    with importing():  # which other products do without
        from asmdnn.primitives.products.words import as_words

    return as_words(desc, types, engine)


def job_of(desc: MatMul, attr: Attr, engine: Engine, types: Types, tiled: bool) -> Job:
    """The product of strides.  tiled: for tiles of AMX.  Raises Refused."""
    level = dot_level(types, engine.isa)
    vectors = PANEL_VECTORS if tiled else panel_vectors(*sizes_of(desc), types, level, engine.tuning.products)
    tiles = WeightsPanels(types, lanes_of(level), vectors)
    has_zero_point = "src" in dict(attr.zero_points)
    down = not tiled and has_few_columns(desc, types, engine)
    passed = resolve(desc, tiles, has_zero_point, down)
    refuse_overlap(dst=passed.dst)
    for name in passed.tensors().keys() & {"dst", "bias"}:
        if (dtype := passed.tensors()[name].dtype) not in RESULTS:
            raise Refused(f"{name} is {dtype}, it must be one of {', '.join(map(str, RESULTS))}")
    desc = resolve(passed.with_formats(unreadable(passed, tiles)), tiles, has_zero_point, down)
    post_ops = chain_of(
        attr,
        desc.tensors() | {"src": passed.src},
        scaled_dims(desc.dst.ndims),
        desc.bias,
        types.sums,
        types.sums == s32,
    )
    others = post_ops.operands(passed.dst, RESULTS)
    read = {operand: plain(tensor) for operand, tensor in others.items()}
    p = product_of(replace(desc, bias=None) if post_ops.adds_bias else desc, types)
    p = replace(p, post_op_operands=tuple(matrix_of(*other) for other in read.items()))
    tensors, as_passed = desc.tensors() | post_ops.arguments(read), passed.tensors() | post_ops.arguments(others)
    target, assembly = target_of(engine, Epilogue(post_ops), types, tiled), Assembly(engine.tuning, engine.isa)
    if types.sums == s32:
        has_sums = has_zero_point or isinstance(desc.weights, SummedDesc)
        few = 1 if tiles.takes(desc.weights) else FEW_ROWS
        are_few = prod(desc.dst.dims[:-1]) <= few * prod(desc.weights.dims[:-2])
        if are_few and not has_sums and not tiled and not takes_rows(p, target):
            # Sums of columns would read all weights once more; dots along rows need none.
            target = replace(target, isa=unshifted_level(types, engine.isa))
        shift = 0 if tiled else dot_class(types, target.isa).shift
        level = dot_level(types, target.isa)
        adds_up = shift > 0 and not has_sums and isinstance(p.weights, Matrix)
        p = replace(p, bias=add_start(assembly, desc.weights, level, shift, has_zero_point), adds_up=adds_up)
        points = {ZERO_POINT: MemoryDesc((1,), s32, "a")} if has_zero_point else {}
        tensors, as_passed = tensors | points, as_passed | points
    return Job(assembly, p, target, tensors, as_passed, reads=("dst",) * post_ops.reads_dst)


def in_panels(dims: tuple[int, int], types: Types, engine: Engine) -> MemoryDesc:
    """Weights of k x n as tiles read them fastest, however few their columns are."""
    tiles = WeightsPanels(types, lanes_of(dot_level(types, engine.isa)))
    return MemoryDesc(dims, types.weights, tiles.tag(2, dims[1]) if dims[1] > 1 else LETTERS[:2])


def sizes_of(desc: MatMul) -> tuple[int, int, int]:
    """(rows that the same weights are multiplied with, columns, k)."""
    *rows, n = desc.dst.dims
    return prod(rows) // max(1, prod(desc.weights.dims[:-2])), n, desc.src.dims[-1]


def scaled_dims(ndims: int) -> dict[str, dict[int, int]]:
    """The dims of src and weights that dst has too: of the batch, and rows or columns."""
    batch = {dim: dim for dim in range(ndims - 2)}
    return {"src": batch | {ndims - 2: ndims - 2}, "weights": batch | {ndims - 1: ndims - 1}}


def has_few_columns(desc: MatMul, types: Types, engine: Engine) -> bool:
    """Whether dots multiply with weights whose columns are dense."""
    *rows, n = desc.dst.dims
    sizes = (prod(rows), n, desc.src.dims[-1])
    one = prod(desc.weights.dims[:-2]) == 1
    return one and are_few(sizes, types, dot_level(types, engine.isa), engine.tuning.products)


def resolve(desc: MatMul, tiles: WeightsPanels, has_zero_point: bool = False, down: bool = False) -> MatMul:
    """`any` becomes row-major, and for weights of several columns panels, or dense columns if so asked; with sums of
    columns where src has a zero point, or is of a type that levels shift."""
    formats = {}
    for name, d in desc.tensors().items():
        if d.is_any:
            panels = name == "weights" and min(d.dims) > 0 and d.dims[-1] > 1 and not down
            tag = tiles.tag(d.ndims, d.dims[-1]) if panels else LETTERS[: d.ndims]
            if name == "weights" and down:
                tag = tag[:-2] + tag[:-3:-1]
            formats[name] = MemoryDesc(d.dims, d.dtype, tag)
            if panels and tiles.types.sums == s32 and (has_zero_point or tiles.types.src == s8):
                formats[name] = SummedDesc(formats[name])
    return desc.with_formats(formats)


def check_elements(weights: MemoryDesc) -> None:
    """Raise Refused for weights in a format that holds something else."""
    if not weights.holds_elements:
        way = "pass the fpmath_mode that they were packed for, or a format that holds them"
        raise Refused(f"weights are {format_of(weights)}, whose elements are transformed: {way}")


def check_tensors(
    tensors: Mapping[str, MemoryDesc], outputs: Container[str] = (), types: Sequence[DataType] = (f32,)
) -> None:
    """Raise Refused unless these are tensors of a product of f32; types: that other plans of it take, too."""
    for name, tensor in tensors.items():
        if tensor.dtype != f32:
            raise Refused(f"{name} is {tensor.dtype}, use {', '.join(map(str, types))}")
    refuse_overlap(**{name: tensor for name, tensor in tensors.items() if name in outputs})


def unreadable(desc: MatMul, tiles: WeightsPanels) -> dict[str, MemoryDesc]:
    """The tensors that tiles cannot address, with format `any`: tiles get copies of them."""
    copied = {
        name: MemoryDesc(tensor.dims, tensor.dtype, "any")
        for name, tensor in desc.tensors().items()
        if plain(tensor) != tensor and not (name == "weights" and tiles.takes(tensor))
    }
    src, types = desc.src, tiles.types
    if src.dtype != types.src or (types.group > 1 and src.dims[-1] > 1 and src.strides[-1] != 1):
        copied["src"] = MemoryDesc(src.dims, types.src, "any")
    return copied


def plain(desc: MemoryDesc) -> MemoryDesc:
    """`desc` if it has no blocks, and the rows of a tile are in reach of each other; else a dense tensor."""
    far = max(desc.strides[-2:], default=0) * desc.dtype.size_bytes * TILE_ROWS > MAX_OFFSET
    return row_major(desc.dims, desc) if desc.inner_blocks or far else desc


def product_of(desc: MatMul, types: Types) -> Product:
    *batch, m, n = desc.dst.dims
    group, depth = types.group, desc.src.dims[-1]
    weights: Matrix | Panels = panels_of("weights", desc.weights, group) or matrix_of("weights", desc.weights)
    bias = None if desc.bias is None else matrix_of("bias", desc.bias)
    src, dst = matrix_of("src", desc.src), matrix_of("dst", desc.dst)
    src = src.in_groups(group)
    k = -(-depth // group)
    return Product(
        batch=tuple(batch),
        m=m,
        n=n,
        k=k,
        src=src,
        weights=weights,
        dst=dst,
        bias=bias,
        types=types,
        missing=k * group - depth,
    )
