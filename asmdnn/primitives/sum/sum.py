"""The sum of many tensors, each with a factor."""

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.exact import exact
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.program import Program
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.numbers import finite
from asmdnn.primitives.concat.concat import descs_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.shapes.formats import like
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass

NAME = "sum"
MOST_SOURCES = 64


@exact
@dataclass(frozen=True, slots=True, eq=False)
class SumForward:
    """dst = scales[0] * src0 + scales[1] * src1 + ..., from left to right, each product and sum rounded once together.

    srcs: up to 64 tensors of dst's dims, any formats; the arguments are src0, src1, ...; scales: a number for each,
    default 1.  In place on a source of dst's descriptor.  Raises InvalidArguments.
    """

    srcs: tuple[MemoryDesc, ...]
    dst: MemoryDesc
    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "srcs", descs_of("srcs", self.srcs))
        check_tensor("dst", self.dst)
        if len(self.srcs) > MOST_SOURCES:
            raise InvalidArguments(f"srcs has {counted(len(self.srcs), 'tensor')}, a sum takes at most {MOST_SOURCES}")
        for k, src in enumerate(self.srcs):
            if src.dims != self.dst.dims:
                raise InvalidArguments(f"src{k} has dims {src.dims}, they must be dst's: {self.dst.dims}")
        if not isinstance(self.scales, tuple) or len(self.scales) not in (0, len(self.srcs)):
            raise InvalidArguments(f"scales must be {counted(len(self.srcs), 'number')}, not {shown(self.scales)}")
        scales = self.scales or (1.0,) * len(self.srcs)
        object.__setattr__(self, "scales", tuple(finite(f"scales[{k}]", x) for k, x in enumerate(scales)))

    def __str__(self) -> str:
        terms = (f"{scale:g} * {src}" for scale, src in zip(self.scales, self.srcs, strict=True))
        return f"sum of {', '.join(terms)} to {self.dst}"


@implementation(NAME, f32_level)
def plan(desc: SumForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a sum.  Raises Refused."""
    first = like(desc.dst, desc.srcs[0])
    dst = like(first, desc.dst)
    names = [f"src{k}" for k in range(1, len(desc.srcs))]
    others = {name: like(dst, src) for name, src in zip(names, desc.srcs[1:], strict=True)}
    program = weighted(desc.scales)
    request = Request(
        NAME, ("src0", first), ("dst", dst), others,
        lambda operands: ExpressionOp(program, tuple(operands[name] for name in names)),
    )  # fmt: skip
    return schedule(request, attr, engine)


def weighted(scales: tuple[float, ...]) -> Program:
    """scales[0] * x + scales[1] * y + ..."""
    build = Builder(len(scales))
    terms = list(zip(scales, build.inputs, strict=True))
    scale, x = terms[0]
    total: Term = x if scale == 1.0 else x * scale
    for scale, x in terms[1:]:
        total = total + x if scale == 1.0 else build.fma(x, scale, total)
    return build.finish(total)
