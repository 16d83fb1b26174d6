"""`--rnn`: recurrent layers."""

import re

from asmdnn.bench.driver import Driver
from asmdnn.bench.recurrent.problem import RnnProblem, rnn_problem
from asmdnn.bench.recurrent_work import COMMON, DIRECTIONS, NTC, PER_CHANNEL, TYPES, RnnCase, RnnSettings, work
from asmdnn.bench.vocabulary import ALL_DATA_TYPES
from asmdnn.bench.words import boolean, direction, number, one_of, option
from asmdnn.definitions.recurrent.cells import CELLS
from asmdnn.definitions.recurrent.layers import LEFT2RIGHT
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.records import replace

PASSES = {"FWD_I": "", "FWD_D": "training", "BWD_DW": "backward"}
STEPS_FIRST = ("tnc", "abc", "any", "undef", "")


def _completed(settings: RnnSettings, problem: RnnProblem) -> tuple[RnnSettings, RnnProblem]:
    sizes = {"layers": settings.l, "steps": settings.t, "mb": settings.mb}
    given = {name: size for name, size in sizes.items() if size}
    return replace(settings, l=0, t=0, mb=0), replace(problem, **given)  # type: ignore[arg-type]


def _alg(word: str) -> str:
    """A cell by benchdnn's name; those with attention raise Unimplemented."""
    if word.upper() in ("VANILLA_AUGRU", "LBR_AUGRU"):
        raise Unimplemented(f"{word.upper()} is not built yet, only {', '.join(CELLS)}")
    return one_of(*CELLS)(word)


def _tags(word: str) -> tuple[str, str]:
    """Of src_layer and dst_layer; that of the weights, between them, is for --use-packed to say."""
    src, *others = word.split(":")
    if len(others) > 2:
        raise InvalidArguments(f"has '{word}', which is more than SRC:WEIGHTS:DST")
    dst = others[1] if len(others) > 1 else src
    unknown = [tag for tag in (src, *others) if tag not in (*STEPS_FIRST, NTC, "bac")]
    if unknown:
        raise Unimplemented(f"{unknown[0]} is not built yet, only tnc and ntc")
    return tuple("tnc" if tag in STEPS_FIRST else NTC for tag in (src, dst))  # type: ignore[return-value]  # of two


def _activation(word: str) -> str:
    """UNDEF is what files write for cells that have none to choose."""
    return "RELU" if word.upper() == "UNDEF" else one_of("RELU", "LOGISTIC", "TANH")(word)


def _configuration(word: str) -> str:
    """The types of rows and weights; bf16f32, whose bias is f32, is bf16.  Others raise Unimplemented."""
    name = {"bf16f32": "bf16"}.get(word.lower(), word.lower())
    if name in TYPES:
        return name
    if not re.fullmatch(f"({'|'.join(ALL_DATA_TYPES)})+", name):
        raise InvalidArguments("must be f32, or the types of rows and weights in a row, such as u8u8u8f32")
    raise Unimplemented(f"{word} is not built yet, only {', '.join(TYPES)}")


def _title(case: RnnCase) -> str:
    settings = case.settings
    cell = settings.alg.removeprefix("VANILLA_").lower()
    words = [cell, PASSES[settings.dir], settings.direction.removeprefix(LEFT2RIGHT)]
    words += ["peephole"] * settings.peephole + ["projection"] * settings.projection
    words += ["plain weights"] * (not settings.use_packed)
    words.insert(1, settings.cfg if settings.cfg != "f32" else "")
    return " ".join(word for word in (*words, case.problem.name or str(case.problem)) if word)


DRIVER = Driver(
    "rnn",
    RnnSettings(),
    {
        "dir": option(direction(*PASSES), "FWD_I inference (default), FWD_D training, BWD_DW all gradients"),
        "alg": option(_alg, ", ".join(CELLS)),
        "direction": option(one_of(*DIRECTIONS), ", ".join(DIRECTIONS)),
        "activation": option(_activation, "of VANILLA_RNN: RELU (default, and for UNDEF), LOGISTIC, TANH"),
        "with-peephole": option(boolean, "true: an LSTM with peephole; false (default)", field="peephole"),
        "with-projection": option(boolean, "true: an LSTM with projection; false (default)", field="projection"),
        "trivial-strides": option(boolean, "false: gaps after the rows of layers and states; true (default)"),
        "use-packed": option(boolean, "false: weights are plain, and packed in every call; true (default)"),
        "scaling": option(one_of(PER_CHANNEL, COMMON), "of weights of bytes: per_oc (default), common: one for all"),
        "l": option(number(0), "layers, instead of each problem's own (0, the default)"),
        "t": option(number(0), "time steps, likewise"),
        "mb": option(number(0), "sequences, likewise"),
        "tag": option(_tags, "tnc (default) or ntc, of both layers, or src_layer:any:dst_layer",
                      lambda tags: ":any:".join(tags)),
        "cfg": option(_configuration, "data types: f32 (default), bf16, f16, u8u8u8u8, .."),
    },
    rnn_problem,
    work,
    example="--mode=CP --alg=VANILLA_LSTM,LBR_GRU --threads=1 --peer=onednn t50mb16sic512",
    notation='l1t50mb16sic512slc512dhc512dic512n"name"',
    bandwidth_bound=False,
    title=_title,
    synonyms={"prop": "dir"},
    peers=("onednn", "torch"),
    completed=_completed,
)  # fmt: skip
