"""Batch-reduced products: dst = post_ops(c + sum over i of a[i] * b[i]), as oneDNN's brgemm and LIBXSMM's.

a[i] is row-major.  b[i] is what `transform` makes: the elements of a group of k (1 of f32, 2 of bf16, 4 of bytes) of
every column side by side, rows of groups ldb columns apart, zero after k in the last group.
"""

from collections.abc import Callable
from typing import Any, Final

from asmdnn.asm import FunctionBuilder, Register
from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.generators.checksum import checksum
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, RESULTS
from asmdnn.isa.dot import OFFERED as MULTIPLIED
from asmdnn.isa.dot import Types, dot_class, dot_level
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.records import replace
from asmdnn.types import DATA_TYPES, DataType
from asmdnn.ukernel.brgemm_code import BrgemmCode
from asmdnn.ukernel.brgemm_shape import KINDS, Brgemm
from asmdnn.ukernel.checks import leading, level, size, type_of
from asmdnn.ukernel.kernel import Argument, Count, KernelText, Pointed, UKernel
from asmdnn.ukernel.operands import PLAIN, Chained, attr_of, chained, refusing

A_TYPES: Final = tuple(dict.fromkeys(x.src for x in MULTIPLIED))
B_TYPES: Final = tuple(dict.fromkeys(x.weights for x in MULTIPLIED))


def brgemm(
    m: int,
    n: int,
    k: int,
    a: str = "f32",
    b: str = "f32",
    dst: str = "",
    *,
    batch: str = "stride",
    accumulate: bool = False,
    lda: int = 0,
    ldb: int = 0,
    ldc: int = 0,
    ldd: int = 0,
    a_step: int = 0,
    b_step: int = 0,
    attr: Any = PLAIN,
    isa: str = "",
) -> UKernel:
    """A kernel of `void(a, b, batch, .., dst)`: dst[m, n] = post_ops(c + sum over i < batch of a[i] * b[i]).

    a, b: types, as f32 f32, bf16 bf16, u8 s8, s8 s8, and f32 by bf16, f16, s8, u8.  Sums are s32 of bytes, else f32.
    dst: its type, by default that of the sums.
    lda, ldb, ldc, ldd: elements from row to row, of a, b, c and dst.  All are dense by default, but ldb, columns of a
    row of groups, is n in whole vectors, as `transform` writes; where f32 is multiplied, ldb=n is plain b.
    batch: "stride", the next a and b are a_step and b_step bytes on (by default after the one before); "offset", after
    b come `offsets`, int64[batch, 2] of bytes after a and b; "address", instead of both come arrays of addresses.
    accumulate: an argument c, of the sums' type, from which they start, is before dst, and may be dst.
    attr: post-ops, or Attr with scales of src, weights, dst, and zero points of dst; operands are arguments after dst.
    s8 s8 at levels that multiply u8 by s8 take `compensation`, s32[n], before dst: see compensation().
    isa: by default the best level at hand that gains by these types.
    Raises InvalidArguments for what cannot be, Unimplemented for types that no instruction of the level multiplies.
    """
    sizes, types = (size("m", m), size("n", n), size("k", k)), _types(a, b)
    of_dst, found = type_of("dst", dst or types.sums, RESULTS), dot_level(types, level(isa))
    a_row, b_row, c_row, dst_row = _distances(types, sizes, of_dst, lanes_of(found), (lda, ldb, ldc, ldd))
    shape = Brgemm(
        isa=found,
        types=types,
        size=sizes,
        a_row_bytes=a_row,
        b_row_bytes=b_row,
        c_row_bytes=c_row,
        dst_row_bytes=dst_row,
        dst=of_dst,
        accumulate=bool(accumulate),
        shift=dot_class(types, found).shift,
        chain=_chain(attr, types, sizes, of_dst, lanes_of(found)),
    )
    return BrgemmKernel(_batched(shape, batch, a_step, b_step))


def _batched(shape: Brgemm, kind: str, a_step: int, b_step: int) -> Brgemm:
    if kind not in KINDS:
        raise InvalidArguments(f"batch {shown(kind)} is not one of {', '.join(KINDS)}.")
    if kind != "stride" and (a_step or b_step):
        raise InvalidArguments(f"a_step and b_step are for batch='stride', not {kind!r}.")
    m, _, k = shape.size
    a_next, b_next = m * shape.a_row_bytes, -(-k // shape.types.group) * shape.b_row_bytes
    steps = size("a_step", a_step or a_next, most=MAX_OFFSET), size("b_step", b_step or b_next, most=MAX_OFFSET)
    return replace(shape, kind=kind, steps=steps)


def _distances(
    types: Types, sizes: tuple[int, int, int], dst: DataType, lanes: int, lds: tuple[int, int, int, int]
) -> tuple[int, int, int, int]:
    """Bytes from row to row, of a, b, c and dst."""
    (_, n, k), (lda, ldb, ldc, ldd) = sizes, lds
    return (
        leading("lda", lda, k) * types.src.size_bytes,
        leading("ldb", ldb or -(-n // lanes) * lanes, n) * types.weights_bytes,
        leading("ldc", ldc, n) * types.sums.size_bytes,
        leading("ldd", ldd, n) * dst.size_bytes,
    )


class BrgemmKernel(UKernel):
    """`packed_columns`: ldb, in columns.  shift: what the dot product adds to a; see compensation()."""

    def __init__(self, shape: Brgemm) -> None:
        self.shape, self.shift = shape, shape.shift
        arguments = _arguments(shape)
        words = "x".join(map(str, shape.size))
        name = f"brgemm_{shape.types}_{words}_{shape.kind}_{checksum(shape)}_{shape.isa}"
        super().__init__(KernelText(name, shape.isa, arguments, _text(shape)), _body(shape, arguments))

    def __call__(self, *arguments: Any) -> None:
        if self.shape.kind == "address":
            raise InvalidArguments(f"{self.__name__} takes addresses, which cannot be checked: call raw().")
        if self.shape.kind == "offset" and len(arguments) == len(self.described.arguments):
            self._check_offsets(arguments)
        super().__call__(*arguments)

    def _check_offsets(self, arguments: tuple[Any, ...]) -> None:
        """Raises InvalidArguments for one that leads out of its array."""
        a, b, offsets, batch = arguments[:4]
        import numpy as np

        pairs = np.asarray(offsets)
        if not isinstance(batch, int) or pairs.dtype != np.int64 or pairs.size < 2 * batch:
            return  # which is refused as all arguments are
        for name, array, at, needed in zip(
            "ab", (a, b), pairs.ravel()[: 2 * batch].reshape(-1, 2).T, self.one, strict=True
        ):
            outside = [int(x) for x in at if not 0 <= x <= getattr(array, "nbytes", 0) - needed]
            if outside:
                raise InvalidArguments(
                    f"offsets of {self.__name__} has {outside[0]} bytes into {name}, which has {array.nbytes}: "
                    f"{needed} bytes are read there."
                )

    @property
    def one(self) -> tuple[int, int]:
        """The bytes that one a and one b have."""
        return _one(self.shape)


def compensation(b: Any, kernel: UKernel) -> Any:
    """What the argument `compensation` of s8 by s8 is: s32[n], -shift * the sums of b's columns.

    b: all that one call multiplies, s8[.., n] before `transform`: of a batch, one below the other.
    """
    import numpy as np

    shift = getattr(kernel, "shift", 0)
    array = np.asarray(b)
    if array.dtype != np.int8 or array.ndim < 2:
        raise InvalidArguments(
            f"compensation of {array.dtype}[{counted(array.ndim, 'dim')}]: b is int8, [k, n] or [batch, k, n]."
        )
    return (-shift * array.astype(np.int32).reshape(-1, array.shape[-1]).sum(0)).astype(np.int32)


def _types(a: str, b: str) -> Types:
    src, weights = type_of("a", a, A_TYPES), type_of("b", b, B_TYPES)
    found = [x for x in MULTIPLIED if (x.src, x.weights) == (src, weights)]
    if not found:
        pairs = ", ".join(f"{x.src} {x.weights}" for x in MULTIPLIED)
        raise InvalidArguments(f"a {src} and b {weights} are not multiplied: there are {pairs}.")
    return found[0]


def _chain(attr: Any, types: Types, sizes: tuple[int, int, int], dst: DataType, lanes: int) -> Chained:
    m, n, k = sizes
    descs = {
        "src": MemoryDesc((m, k), types.src, "ab"),
        "weights": MemoryDesc((k, n), types.weights, "ab"),
        "dst": MemoryDesc((m, n), dst, "ab"),
    }
    with refusing():
        chain = chain_of(attr_of(attr), descs, {"src": {0: 0}, "weights": {1: 1}}, None, sums=types.sums)
    return chained(chain, descs["dst"], lanes, len(ARGUMENTS), DATA_TYPES.values())


def _one(shape: Brgemm) -> tuple[int, int]:
    m, n, k = shape.size
    groups = -(-k // shape.types.group)
    a = (m - 1) * shape.a_row_bytes + k * shape.types.src.size_bytes
    return a, (groups - 1) * shape.b_row_bytes + n * shape.types.weights_bytes


def _arguments(shape: Brgemm) -> tuple[Argument, ...]:
    (m, n, _), types = shape.size, shape.types
    a, b = (str(x) for x in _one(shape))
    if shape.kind == "stride":
        a, b = (f"min(batch, 1)*((batch - 1)*{step} + {one})" for step, one in zip(shape.steps, (a, b), strict=True))
    first: list[Argument] = [Pointed("a", types.src, a), Pointed("b", types.weights, b)]
    if shape.kind == "offset":
        first.append(Pointed("offsets", None, "16*batch", ctype="int64_t"))
    elif shape.kind == "address":
        first = [Pointed(f"{x}_addresses", None, "8*batch", ctype="uintptr_t") for x in "ab"]
    c = str((m - 1) * shape.c_row_bytes + n * types.sums.size_bytes)
    dst = str((m - 1) * shape.dst_row_bytes + n * shape.dst.size_bytes)
    more = [Pointed("c", types.sums, c)] * shape.accumulate
    more += [Pointed("compensation", types.sums, str(n * types.sums.size_bytes))] * bool(shape.shift)
    reads_dst = shape.tile(1, 1).reads_dst()
    return (
        *first,
        Count("batch"),
        *more,
        Pointed("dst", shape.dst, dst if reads_dst else "", dst),
        *shape.chain.buffers,
    )


def _body(shape: Brgemm, arguments: tuple[Argument, ...]) -> Callable[..., None]:
    words = [{"a": "src", "b": "weights"}.get(x.name, x.name) for x in arguments]

    def body(f: FunctionBuilder, *registers: Register) -> None:
        BrgemmCode(shape, f, dict(zip(words, registers, strict=True))).emit()

    return body


def _text(shape: Brgemm) -> str:
    m, n, k = shape.size
    types, group = shape.types, shape.types.group
    width = shape.b_row_bytes // types.weights_bytes
    starts = "c + " * shape.accumulate
    after = "".join(f", then {op.name}" for op in shape.chain.post_ops)
    return (
        f"dst[{m}, {n}] = {starts}sum over i < batch of a[i][{m}, {k}] * b[i][{k}, {n}]{after}.\n"
        f"a: {types.src}, rows {shape.a_row_bytes} bytes apart.\n"
        f"b: {types.weights}[{-(-k // group)}][{width}][{group}], {n} columns of it are read.\n"
        f"dst: {shape.dst}, rows {shape.dst_row_bytes} bytes apart.  Sums are {types.sums}."
    )
