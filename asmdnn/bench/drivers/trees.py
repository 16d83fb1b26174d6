"""`--trees`: sums over decision trees, of this library alone."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.forests import SPLITS, forest_of
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.words import Settings, flag, number, one_of, option, tag
from asmdnn.definitions.trees import tree_ensemble
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.tree_ensemble.description import AGGREGATES
from asmdnn.primitives.tree_ensemble.packing import packed
from asmdnn.records import dataclass

MOST_TREES, MOST_DEPTH = 1 << 12, 16  # as problems, which are made in Python


@dataclass(frozen=True, slots=True)
class TreesSettings(Settings):
    stag: str = "abx"
    dtag: str = "abx"
    trees: int = 10
    depth: int = 6
    alg: str = "sum"
    single: bool = True


class TreesWork(TensorWork):
    """The same arithmetic in the same order as the definition, so that results are equal."""

    exactness = (False,)

    def __init__(self, case: Case[TreesSettings, DimsProblem]) -> None:
        settings, (src, dst) = case.settings, case.problem.tensors
        if not len(src) == len(dst) == 2 or src[0] != dst[0] or 0 in (src[1], dst[1]):
            raise InvalidArguments(f"{dims_words(case.problem)}: it must be rows and features, the rows and columns")
        random, self.alg = np.random.default_rng(src[1]), settings.alg
        depths = random.integers(0, settings.depth, settings.trees, endpoint=True).tolist()
        self.forest = forest_of(random, depths, src[1], dst[1], single=settings.single)
        made = packed(self.forest, src[1], dst[1], settings.alg)
        self.tables = {"nodes": made.nodes, "order": made.order}
        self.tables |= {} if made.values is None else {"values": made.values}
        self.descs = {"src": desc_of(src, "f32", settings.stag), "dst": desc_of(dst, "f32", settings.dtag)}
        self.descs |= {name: dnn.Memory.from_array(table).desc for name, table in self.tables.items()}
        self.descs["base"] = desc_of(dst[1:], "f32", "a")
        tensors = {"values": None, **self.descs}
        self.desc = dnn.TreeEnsemble(**tensors, trees=made.trees, aggregate=settings.alg, mirrored=made.mirrored)  # type: ignore[arg-type]

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        x, base = (random.normal(size=self.descs[name].dims).astype(np.float32) for name in ("src", "base"))
        src = np.where(random.random(x.shape) < 0.5, random.choice(SPLITS, x.shape), x)
        return {"src": src, "base": base, **self.tables}

    def answer(self, data: TensorData) -> Answer:
        values = tree_ensemble(data.arrays["src"], self.forest, data.arrays["base"], self.alg)
        return Answer(values.astype(np.float64), 0.0, "numpy")


DRIVER = Driver(
    "trees",
    TreesSettings(),
    {
        "stag": option(tag, "layout of src: ab (default), ba"),
        "dtag": option(tag, "layout of dst: ab (default), ba"),
        "trees": option(number(1, MOST_TREES), "how many (10)"),
        "depth": option(number(0, MOST_DEPTH), "the most steps from a root to a leaf (6)"),
        "alg": option(one_of(*AGGREGATES), "what becomes of leaves: sum (default), min, max"),
        "single": flag("true (default): a tree gives to one column; false: to all"),
    },
    dims_problem(2),
    TreesWork,
    example="--mode=CP --trees=100 --depth=8 --threads=1 4096x30:4096x1",
    peers=(),
)
