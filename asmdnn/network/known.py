"""Which operators of a model are known, and how each is computed: what is said of a file as a whole."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from asmdnn.errors import Unimplemented, shown
from asmdnn.network.decompositions.table import foreign
from asmdnn.network.folding.bodies import BODIES
from asmdnn.network.folding.sequences import SEQUENCES
from asmdnn.network.graph import ML, Body, Node
from asmdnn.network.operators.table import operator_of
from asmdnn.records import dataclass

COUNTS = ("nodes", "native", "numpy", "unknown")
MOST_NAMED = 6  # operators that an error names; a message has 500 characters
WAYS = {  # by the domain of operators that are not known: the nearest way
    "com.microsoft.nchwc": "it is made for one CPU: optimise the model with ORT_ENABLE_EXTENDED, or not at all",
    ML: "export what comes before it alone, or with other operators",
}
OTHER_WAY = "export the model with other operators, or in parts before and after it"


@dataclass(frozen=True)
class OperatorUse:
    """An operator of a file: how many nodes it has, of these native, in numpy, and not known; reason: why not all are
    native."""

    operator: str
    nodes: int
    native: int = 0
    numpy: int = 0
    unknown: int = 0
    reason: str = ""


def name_of(node: Node) -> str:
    """The operator, with its domain if that is not ONNX's."""
    name = f"{node.domain}.{node.op}" if node.domain else node.op
    return name if name.replace(".", "").isidentifier() else shown(name)  # a file may have any text there


def is_known(node: Node) -> bool:
    is_folded = (node.op in BODIES or node.op in SEQUENCES) and not node.domain
    return is_folded or operator_of(node) is not None or foreign(node) is not None


def nodes_of(body: Body) -> Iterator[Node]:
    """All nodes, those of bodies inside after the node that has them."""
    for node in body.nodes:
        yield node
        for value in node.attributes.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Body):
                    yield from nodes_of(inner)


def unknown_in(body: Body) -> list[Node]:
    return [node for node in nodes_of(body) if not is_known(node)]


def check_known(body: Body) -> None:
    """Raise Unimplemented for a node that is not known.  Of branches only those that are taken have to be."""
    for node in body.nodes:
        if not is_known(node):
            raise Unimplemented(sentence_of_unknown(node, body))


def sentence_of_unknown(node: Node, body: Body) -> str:
    """What is wrong with a node, and with all others of the model of which that is wrong."""
    domain = f" of domain {node.domain!r}" if node.domain else ""
    text = f"{node} is an operator{domain} that is not known"
    counts = Counter(map(name_of, unknown_in(body)))
    if counts.total() > 1:
        named = ", ".join(f"{op} {count} times" for op, count in counts.most_common(MOST_NAMED))
        more = f", and {len(counts) - MOST_NAMED} others" if len(counts) > MOST_NAMED else ""
        text += f"; of {sum(1 for _ in nodes_of(body))} nodes such are {named}{more}"
    return f"{text}: {WAYS.get(node.domain, OTHER_WAY)}"


def uses_of_unknown(body: Body) -> list[OperatorUse]:
    """Of a model with operators that are not known: these with the nearest way, then the others."""
    counts, known = Counter[str](), Counter[str]()
    ways = dict[str, str]()
    for node in nodes_of(body):
        (known if is_known(node) else counts)[name_of(node)] += 1
        ways[name_of(node)] = WAYS.get(node.domain, "no definition")
    found = [OperatorUse(op, count, unknown=count, reason=ways[op]) for op, count in counts.most_common()]
    return found + [OperatorUse(op, count, reason="known, but nothing is planned") for op, count in known.most_common()]


def uses_of(groups: Sequence[tuple[Sequence[Node], str]]) -> list[OperatorUse]:
    """Of a planned network.  groups: nodes, and why they have no kernel, or nothing; what is refused first."""
    native, numpy, reasons = Counter[str](), Counter[str](), dict[str, str]()
    for nodes, reason in groups:
        for node in nodes:
            (numpy if reason else native)[name_of(node)] += 1
            if reason:
                reasons.setdefault(name_of(node), reason)
    order = sorted(native.keys() | numpy.keys(), key=lambda op: (-numpy[op], -native[op], op))
    return [OperatorUse(op, native[op] + numpy[op], native[op], numpy[op], 0, reasons.get(op, "")) for op in order]


def table_of(uses: Sequence[OperatorUse]) -> str:
    """A line for each operator, and the sums."""
    width = max([len(use.operator) for use in uses] + [len("operator")])
    lines = [f"{'operator':{width}}  nodes  native  numpy  unknown  why not native"]
    for use in [*uses, OperatorUse("all", *(sum(getattr(use, name) for use in uses) for name in COUNTS))]:
        counts = f"{use.nodes:5}  {use.native:6}  {use.numpy:5}  {use.unknown:7}"
        lines.append(f"{use.operator:{width}}  {counts}  {use.reason}".rstrip())
    return "\n".join(lines)


def as_json(uses: Sequence[OperatorUse]) -> list[Mapping[str, object]]:
    """The same as values of JSON."""
    fields = ("operator", *COUNTS, "reason")
    return [{name: getattr(use, name) for name in fields} for use in uses]
