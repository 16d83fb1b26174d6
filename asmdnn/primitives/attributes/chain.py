"""What follows the sums of a convolution or a product: scales, the bias after them, post-ops, and the scales of dst.

    dst = post_ops(src_scales * weights_scales * sums + bias) / dst_scales + dst_zero_points

Scales, and a bias that has to wait for them, are read as binary post-ops are, so that kernels know one mechanism.
"""

from collections.abc import Collection, Mapping
from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.generators.functions import postops
from asmdnn.generators.functions.postops import Operand
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.depthwise import Depthwise
from asmdnn.primitives.attributes.post_ops import Binary, ElementwisePostOp, Sum
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.shapes.formats import dense_like, of_type
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32, s8, s16, s32, u8

BIAS = "bias"
DST_POINTS = "dst_zero_points"
INTEGERS = (u8, s8, s16, s32)  # which have zero points


@dataclass(frozen=True, slots=True)
class Link:
    """A post-op, the arguments of the primitive that it reads, and the form in which a caller passes its tensor, where
    that is another one: scales are passed as a vector, and read as a tensor that broadcasts to dst."""

    op: ElementwisePostOp
    names: tuple[str, ...] = ()
    passed: MemoryDesc | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """Links in the order of execution.  is_of_integers: whether all of them add integers to sums that stay s32."""

    links: tuple[Link, ...] = ()
    is_of_integers: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of all arguments that are read, in order."""
        return tuple(name for link in self.links for name in link.names)

    @property
    def reads_dst(self) -> bool:
        """Whether the result depends on what the destination held before."""
        return any(isinstance(link.op, Sum) for link in self.links)

    @property
    def may_split(self) -> bool:
        """Whether dst may hold partial sums: not if a post-op after the first one reads what it held before."""
        return not any(isinstance(link.op, Sum) for link in self.links[1:])

    @property
    def adds_bias(self) -> bool:
        """Whether the bias is a link: kernels do not start from it then."""
        return BIAS in self.names

    def operands(self, dst: MemoryDesc, types: Collection[DataType] = (f32,)) -> dict[str, MemoryDesc]:
        """What is read beside a result like dst, as tensors that broadcast to it: `any` becomes dst's format, or one
        in its order.  Raises InvalidArguments if one cannot be broadcast to dst, Refused for other types."""
        found = {}
        for link in self.links:
            for name, desc in zip(link.names, link.op.tensors.values(), strict=True):
                if desc.ndims != dst.ndims or any(n not in (1, m) for n, m in zip(desc.dims, dst.dims, strict=True)):
                    raise InvalidArguments(f"{name} has dims {desc.dims}, each must be 1 or that of dst: {dst.dims}")
                if desc.dtype not in types:
                    raise Refused(f"{name} is {desc.dtype}, use {', '.join(map(str, types))}")
                if desc.is_any and not dst.is_any:
                    desc = of_type(dst, desc.dtype) if desc.dims == dst.dims else dense_like(dst, desc)
                found[name] = desc
        return found

    def arguments(self, operands: Mapping[str, MemoryDesc]) -> dict[str, MemoryDesc]:
        """`operands`, as a caller passes them."""
        return {**operands, **{name: link.passed for link in self.links if link.passed for name in link.names}}

    def on_registers(self, operands: Mapping[str, Operand]) -> tuple[postops.PostOp, ...]:
        """The chain as kernels execute it, with an operand for each of `names`."""
        ops = tuple(link.op.on_registers(*(operands[name] for name in link.names)) for link in self.links)
        return tuple(postops.IntegerOp("add", *op.operands) for op in ops) if self.is_of_integers else ops

    def further_on_registers(self, number: int, operands: Mapping[str, Operand]) -> tuple[postops.PostOp, ...]:
        """The chain that makes a further value of the last link, a user's post-op."""
        *others, last = self.links
        assert isinstance(last.op, PostOp)
        before = Chain(tuple(others)).on_registers(operands)
        return (*before, last.op.on_registers(*(operands[name] for name in last.names), result=1 + number))


NO_CHAIN = Chain()


def scales_of_sources(attr: Attr, sources: Mapping[str, MemoryDesc]) -> dict[str, MemoryDesc]:
    """Of a primitive with several sources: for each that has scales these, as a tensor that broadcasts to it.  Raises
    Refused for scales of something else, and for zero points."""
    if attr.zero_points:
        raise Refused("zero points are not implemented")
    found = {}
    for name, mask in attr.scales:
        if name not in sources:
            raise Refused(f"there is no {name} that can have scales: use {', '.join(sources)}")
        desc = sources[name]
        if mask >> desc.ndims:
            raise Refused(f"scales of {name} have the mask {mask}, which is for more than {desc.ndims} dims")
        shape = [size if mask >> dim & 1 else 1 for dim, size in enumerate(desc.dims)]
        found[name] = MemoryDesc(shape, f32, LETTERS[: desc.ndims])
    return found


def in_vectors(scales: Mapping[str, MemoryDesc]) -> dict[str, MemoryDesc]:
    """The arguments that scales of sources are, as a caller passes them: dense vectors."""
    return {f"{name}_scales": MemoryDesc((prod(desc.dims),), f32, "a") for name, desc in scales.items()}


def further_name(dst: str, post_op: int, number: int) -> str:
    """The argument that a further value of a post-op is, beside dst."""
    return f"{dst}_{post_op}_{number}"


def further_of(attr: Attr, dst: str) -> list[str]:
    """The arguments that the further values of the last post-op are, beside dst."""
    last = attr.post_ops[-1] if attr.post_ops else None
    count = last.further if isinstance(last, PostOp) else 0
    return [further_name(dst, len(attr.post_ops) - 1, k) for k in range(count)]


def post_ops_of(attr: Attr, stores: bool = False) -> Chain:
    """The post-ops alone, their tensors named by their numbers.  stores: whether further values of the last one can be
    stored.  Raises Refused for a depthwise convolution, and for such values elsewhere."""
    links = []
    for i, op in enumerate(attr.post_ops):
        if isinstance(op, PostOp) and op.further and not (stores and op is attr.post_ops[-1]):
            raise Refused("a post-op that stores further values is implemented after element-wise functions only")
        if isinstance(op, Depthwise):
            raise Refused("a depthwise post-op is implemented after convolutions only, without scales")
        links.append(Link(op, tuple(f"{name}_{i}" for name in op.tensors)))
    return Chain(tuple(links))


def scaled_post_ops(attr: Attr, tensors: Mapping[str, MemoryDesc]) -> Chain:
    """For a primitive of src and a dst of its dims: post-ops between the scales of src and those of dst.

    Raises Refused for other tensors, and for scales over several dims.
    """
    for name, mask in attr.scales:
        if name not in tensors or mask & (mask - 1):
            raise Refused(f"scales of {name} with the mask {mask} are not implemented: of src and dst, over one dim")
    return chain_of(attr, tensors, {"src": {dim: dim for dim in range(tensors["src"].ndims)}}, None)


def chain_of(
    attr: Attr,
    tensors: Mapping[str, MemoryDesc],
    kept: Mapping[str, Mapping[int, int]],
    bias: MemoryDesc | None,
    sums: DataType = f32,
    starts: bool = False,
) -> Chain:
    """Everything that attributes do to the sums.  Raises Refused where that is not possible.

    tensors: src, weights and dst, and the bias if there is one, as the caller passes them.  kept: for src and weights
    the dims that dst has too, and which one that is there; others are summed over, and can have no scales.
    Integers are added to sums of s32 that stay so, modulo 2^32, where there is nothing else to do.
    bias: as a tensor that broadcasts to dst; it is a link where kernels cannot start from it, since scales come before
    it, sums are not f32 or not of its type, or integers of dst are to be as exact as sums without it are.
    starts: whether the caller has sums start from src's zero point.
    """
    check_zero_points(attr, tensors, starts)
    check_accumulation(attr, sums)
    if attr.groups:
        raise Refused(f"scales by groups, {dict(attr.groups)}, are not implemented")
    masks, ndims = dict(attr.scales), tensors["dst"].ndims
    dims_of = {**kept, "dst": {dim: dim for dim in range(ndims)}}
    links = {}
    for name, mask in masks.items():
        if name not in dims_of:
            raise Refused(f"there is no {name} that can have scales")
        desc, dims = tensors[name], dims_of[name]
        own = [dim for dim in range(mask.bit_length()) if mask >> dim & 1]
        for dim in own:
            if dim not in dims:
                allowed = ", ".join(map(str, dims))
                raise Refused(
                    f"scales of {name} have the mask {mask}, but only dims {allowed} of {name} can have scales"
                )
        shape = [1] * ndims
        for dim in own:
            shape[dims[dim]] *= desc.dims[dim]
        if any(n not in (1, m) for n, m in zip(shape, tensors["dst"].dims, strict=True)):
            raise Refused(f"scales of {name} have the mask {mask}: of groups and their channels, all or none have one")
        scales = MemoryDesc(shape, f32, LETTERS[:ndims])
        argument = MemoryDesc((prod(shape),), f32, "a")
        links[name] = Link(Binary("div" if name == "dst" else "mul", scales), (f"{name}_scales",), argument)
    before = tuple(links[name] for name in ("src", "weights") if name in links)
    if bias is not None and (before or not sums == bias.dtype == f32 or tensors["dst"].dtype == s32):
        before = (*before, Link(Binary("add", bias), (BIAS,), tensors[BIAS]))
    after = tuple(links[name] for name in ("dst",) if name in links)
    found = (*before, *post_ops_of(attr).links, *after, *zero_points_of_dst(attr, tensors["dst"]))
    return Chain(found, bool(found) and sums == tensors["dst"].dtype == s32 and all(map(adds_integers, found)))


def adds_integers(link: Link) -> bool:
    """Whether a link can be added to sums of integers as it is: a bias, what dst held, or its zero points."""
    if isinstance(link.op, Sum):
        return link.op == Sum()
    own = link.names in ((BIAS,), (DST_POINTS,))
    return own and isinstance(link.op, Binary) and link.op.src1.dtype in INTEGERS


def zero_points_of_dst(attr: Attr, dst: MemoryDesc) -> tuple[Link, ...]:
    """What is added last."""
    points = dict(attr.zero_points)
    if "dst" not in points:
        return ()
    shape = [n if points["dst"] >> dim & 1 else 1 for dim, n in enumerate(dst.dims)]
    argument = MemoryDesc((prod(shape),), s32, "a")
    return (Link(Binary("add", MemoryDesc(shape, s32, LETTERS[: dst.ndims])), (DST_POINTS,), argument),)


def check_accumulation(attr: Attr, sums: DataType) -> None:
    """Raise Refused for sums of another type than asked for."""
    if attr.accumulation_mode not in ("strict", "relaxed", "any", sums.name):
        raise Refused(f"accumulation_mode is {attr.accumulation_mode}, but sums are {sums} here: use any")


def check_zero_points(attr: Attr, tensors: Mapping[str, MemoryDesc], starts: bool) -> None:
    """Raise Refused for zero points of what has none; starts: whether sums can start from those of src.

    Those of dst are for what integers are multiplied to: as oneDNN, floats have them added, too.
    """
    for name, mask in attr.zero_points:
        if name not in tensors:
            raise Refused(f"there is no {name} that can have zero points")
        dtype = tensors[name].dtype
        if dtype not in INTEGERS and not (name == "dst" and tensors["src"].dtype in INTEGERS):
            raise Refused(f"zero points are for integers, and {name} is {dtype}: leave them out")
        if mask >> tensors[name].ndims:
            raise Refused(f"zero points of {name} have the mask {mask}, for more than {tensors[name].ndims} dims")
        if mask and name != "dst":
            raise Refused(f"zero points of {name} have the mask {mask}, tiles of bytes take one for all (mask 0)")
        if name == "weights" or (name == "src" and not starts):
            raise Refused(f"zero points of {name} are not implemented: use symmetric {name}")
