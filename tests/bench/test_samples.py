"""A seeded sample of every driver's problems in mode C: post-ops, second outputs, and every direction that is built."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.bench.case import prepare
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.drivers import driver_names, driver_of
from asmdnn.bench.problem_text import Impossible
from asmdnn.bench.report import Record
from asmdnn.bench.vocabulary import DIRECTIONS
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.types import IsaName
from tests.bench.test_drivers import read

SAMPLE, PAST_CACHES, SWEEP = 12, 6, 250
LEVELS = [pytest.param(level, marks=pytest.mark.isa(level)) for level in ("avx2", "avx512_core")]
FORWARD_ONLY = ("attr-post-ops", "attr-scales", "bia-dt")
CHAINS = (
    "", "relu", "sum:0.5", "linear:2:1+relu", "add:f32:per_oc", "mul:f32:per_tensor", "prelu:per_oc", "sum+relu",
    "tanh+sum:2", "sub:f32:common+clip:-1:2", "max:f32:per_tensor:axb", "add:f32:per_oc+sum:2:1+swish:1",
)  # fmt: skip
TAGS = ("abx", "axb", "aBx8b")
IMAGES = ("mb2ic19ih5", "mb1ic16iw9", "mb3ic4id2ih4iw3", "mb2ic8ih7iw3")
CONVS = ("mb1ic5ih9oc7kh3ph1", "mb2ic16iw9oc19kw3sw2pw1", "mb1ic8id3ih5iw4oc16kd2kh3kw1", "g2mb1ic16ih6oc8kh1",
         "g6mb2ic6ih7oc6kh3ph1dh1", "mb1ic32ih8oc3kh3ph1")  # fmt: skip
PRODUCT_SCALES = ("", "src:common:0.5", "wei:per_oc", "src:common:2+wei:common:0.5+dst:common:2")
WEIGHTS = {"bia-dt": ("undef", "f32"), "attr-scales": PRODUCT_SCALES}
LAYERS = {"stag": ("any", *TAGS), "dtag": ("any", "axb"), "wtag": ("any", "abx")} | WEIGHTS

# Of a driver its options with their values, and its problems; directions and post-ops join where a driver has them.
TABLE: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "binary": ({"alg": ("add", "mul", "sub", "div", "max", "lt"), "stag": ("abx:abx", "axb:axb", "axb:abx"),
                "inplace": ("false", "false", "true"), "attr-scales": ("", "src:common:0.5+src1:common:2")},
               ("2x19x5:2x19x5", "2x19x3x5:1x19x1x1", "3x8x5:3x1x5", "7x33:1x1")),
    "bnorm": ({"tag": TAGS, "flags": ("", "GC", "CHR", "GCHA", "R", "C", "CH"), "inplace": ("false", "true")}, IMAGES),
    "concat": ({"axis": ("0", "1", "-1"), "stag": ("abx:abx", "axb:abx"), "dtag": ("any", "axb"), "sdt": ("f32", "u8"),
                "attr-scales": ("", "msrc0:common:2+msrc1:common:0.5")}, ("2x19x5:2x19x5", "3x8x4x4:3x8x4x4")),
    "conv": ({"alg": ("direct", "auto", "wino")} | LAYERS, CONVS),
    "cumsum": ({"axis": ("0", "1", "-1"), "exclusive": ("false", "true"), "reverse": ("false", "true"),
                "tag": TAGS, "inplace": ("false", "true")}, ("2x16x5", "7x19x3x4")),
    "deconv": (LAYERS, ("mb1ic5ih4oc7kh3sh2ph1", "mb2ic16iw9oc19kw3pw1", "g4mb1ic8ih5oc8kh2sh2", "ic9ih6oc2kh4sh2ph1")),
    "dropout": ({"p": ("0", "0.3", "0.9"), "tag": TAGS, "seed": ("1", "-7")}, ("2x19x5", "3x7x2x9", "4x250")),
    "eltwise": ({"alg": ("relu", "tanh", "gelu_erf", "exp_dst", "logistic", "square", "abs"),
                 "tag": TAGS, "inplace": ("false", "true")}, ("2x19x5", "3x8x4x4", "4x77")),
    "gather": ({"dt": ("f32", "u8", "bf16"), "axis": ("0", "1"), "stag": ("abx", "axb")}, ("9x7x5:2x3", "30x16:11")),
    "gemm": ({"transa": ("N", "T"), "transb": ("N", "T"), "alpha": ("1", "0.5"), "beta": ("0", "1", "2"),
              "pack": ("", "a", "ab")}, ("7x13:13x19", "16x16:16x33", "1x40:40x24")),
    "gnorm": ({"tag": TAGS, "flags": ("", "C", "CH", "G"), "inplace": ("false", "true")},
              ("g4mb2ic16ih5", "g19mb2ic19id3ih4", "g1mb3ic8iw9")),
    "ip": (LAYERS, ("mb7ic13oc19", "mb2ic16ih3oc8", "mb1ic40oc24")),
    "lnorm": ({"tag": ("abx", "axb", "abx:axb"), "flags": ("", "C", "CH", "G", "M", "MC"), "stat_tag": ("abx", "axb"),
               "inplace": ("false", "true")}, ("3x2x19", "5x33", "2x3x4x16")),
    "lrn": ({"tag": TAGS, "alg": ("ACROSS", "WITHIN")}, ("mb2ic16ih5_ls3alpha0.5k2", "ic20iw7_ls5beta0.6", "ic3id4")),
    "matmul": ({"stag": ("any", "ab", "ba"), "wtag": ("any", "ab", "ba"), "dtag": ("any", "ab"), "bia_mask": ("2", "3")}
               | WEIGHTS, ("7x13:13x19", "1x40:40x24", "16x32:32x5")),
    "pool": ({"alg": ("max", "avg_np", "avg_p"), "tag": TAGS, "dt": ("f32", "f32", "bf16", "u8")},
             ("mb1ic9ih6kh2sh2", "mb2ic16iw11kw3sw2pw1", "ic5id4ih5iw6kd2kh3kw2ph1", "ic8ih9kh9", "ic19ih8kh3ph1dh1")),
    "prelu": ({"stag": ("abx:abx", "axb:abx", "aBx8b:abx"), "inplace": ("false", "true")},
              ("2x19x5:1x19x1", "2x16x3x5:2x16x3x5", "3x8x4:1x1x1")),
    "reduction": ({"alg": ("sum", "mean", "max", "min", "mul", "norm_lp_sum"), "p": ("1", "2"), "stag": TAGS},
                  ("2x19x5:2x19x1", "3x8x4x4:3x1x1x1", "64x7:1x7")),
    "reorder": ({"sdt": ("f32", "s8", "u8", "bf16"), "ddt": ("f32", "s8", "s32", "f16"), "stag": TAGS, "dtag": TAGS,
                 "attr-scales": ("", "src:common:0.5+dst:common:2"), "attr-post-ops": ("", "sum:0.5")},
                ("2x19x5", "3x16x4x4", "1x7x9")),
    "resampling": ({"alg": ("nearest", "linear", "cubic"), "tag": TAGS, "ddt": ("f32", "s8")},
                   ("mb1ic9_ih3oh6", "mb2ic16_iw7ow4", "mb1ic4_id2ih3iw4_od3oh5ow2")),
    "rnn": ({"alg": ("VANILLA_RNN", "VANILLA_LSTM", "VANILLA_GRU", "LBR_GRU"), "activation": ("RELU", "TANH"),
             "direction": ("left2right", "right2left", "concat", "sum"), "trivial-strides": ("true", "false"),
             "tag": ("tnc", "ntc"), "use-packed": ("true", "false")}, ("t3mb2sic13", "l2t2mb3sic8", "t1mb1sic19")),
    "scatter": ({"dt": ("f32", "bf16"), "alg": ("none", "add", "mul"), "axis": ("0", "1"), "stag": ("abx", "axb")},
                ("9x7x5:2x3", "30x16:11")),
    "sdpa": ({"mask": ("none", "buffer", "buffer_1d", "buffer_2d", "causal_bottom_right"),
              "ktag": ("abx", "abdc", "acdb"), "qtag": ("abx", "acbd"), "vtag": ("abx", "abdc"), "dtag": ("abx",)},
             ("1x4x9x8:1x2x8x12:1x2x12x5", "2x3x8x8:2x3x8x8:2x3x8x8")),
    "shuffle": ({"dt": ("f32", "bf16", "u8"), "group": ("2", "4"), "axis": ("1",), "tag": TAGS}, ("2x16x5x3", "1x8x9")),
    "softmax": ({"alg": ("SOFTMAX", "LOGSOFTMAX"), "axis": ("0", "1", "-1"), "stag": TAGS, "inplace": ("false", "true"),
                 "attr-scales": ("", "src:common:0.5+dst:common:2")}, ("2x19x5", "3x8x4x4", "9x33")),
    "sum": ({"sdt": ("f32:f32", "f32:f32:f32", "bf16:f32", "s8:u8"), "scales": ("1", "0.5"), "stag": ("abx", "axb:abx"),
             "inplace": ("false", "true")}, ("2x19x5", "3x8x4x4")),
    "topk": ({"alg": ("max", "min"), "k": ("1", "3"), "values": ("true", "false"), "axis": ("1", "-1"), "stag": TAGS},
             ("2x16x3x5", "3x19x4")),
}  # fmt: skip


def directions(name: str) -> tuple[str, ...]:
    """Those that are built: a new one is in the sample at once."""
    option, found = driver_of(name).options.get("dir"), []
    for word in DIRECTIONS if option else ():
        try:
            option.parse(word)  # type: ignore[union-attr]  # there is one
        except (InvalidArguments, Unimplemented):
            continue
        found.append(word)
    return tuple(found)


def in_turn(seeded: random.Random, values: Sequence[str], count: int) -> list[str]:
    """Each value equally often, but for one, in any order."""
    shuffled = seeded.sample(values, len(values))
    return seeded.sample(list(itertools.islice(itertools.cycle(shuffled), count)), count)


def sample(name: str, count: int) -> Iterator[AnyCase]:
    """So many problems; of every option each value comes in turn, in a shuffled order of its own."""
    seeded = random.Random(name)
    options, problems = TABLE[name]
    listed: dict[str, tuple[str, ...]] = {"attr-post-ops": CHAINS} if "attr-post-ops" in driver_of(name).options else {}
    listed |= {"dir": directions(name)} if directions(name) else {}
    turns = {option: in_turn(seeded, values, count) for option, values in (listed | options).items()}
    for i in range(count):
        is_backward = turns.get("dir", [""] * count)[i].startswith("BWD")
        left = [option for option in turns if not (is_backward and option in FORWARD_ONLY)]
        words = [f"--{option}={turns[option][i]}" for option in left]
        yield from read(" ".join([f"--{name}", "--threads=2", *words, seeded.choice(problems)]))


def result(case: AnyCase, level: str) -> Record | None:
    """None where options do not go together."""
    try:
        (case,) = read(f"{str(case).partition(' ')[0]} --isa={level} {str(case).partition(' ')[2]}")
        return prepare(case)()
    except (Impossible, InvalidArguments):
        return None


def check(name: str, level: str, count: int) -> None:
    statuses, seen = Counter[str](), set()
    for case in sample(name, count):
        record = result(case, level)
        if record is None:
            continue
        assert record.status not in ("failed", "listed"), f"{record.args}: {record.reason}"
        statuses[record.status] += 1
        if record.status == "passed":
            seen.add(getattr(case.settings, "dir", ""))
    assert statuses["passed"] >= count // 2, statuses
    assert seen >= set(directions(name)) or count < SAMPLE


def streaming(part: Any) -> Any:
    """The tuning whose results go past the caches, however small they are."""
    changes: dict[str, Any] = {}
    for name in (field.name for field in fields(part)):
        if name.endswith("streaming_bytes"):
            changes[name] = 1
        elif is_dataclass(getattr(part, name)):
            changes[name] = streaming(getattr(part, name))
    return replace(part, **changes)


def test_every_driver_has_a_sample() -> None:
    assert set(TABLE) == set(driver_names())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", TABLE)
def test_a_sample_is_right(name: str, level: str) -> None:
    check(name, level, SAMPLE)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", TABLE)
def test_a_sample_past_the_caches(name: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose stores end the process where they are not aligned."""
    made = dnn.Engine

    def engine(isa: IsaName = "", threads: int = 0) -> dnn.Engine:
        return made(isa=isa, threads=threads, tuning=streaming(made(isa=isa).tuning))

    monkeypatch.setattr("asmdnn.bench.case.dnn.Engine", engine)
    check(name, level, PAST_CACHES)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", TABLE)
def test_a_sweep_is_right(name: str, level: str) -> None:
    check(name, level, SWEEP)
