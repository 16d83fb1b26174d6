"""Options that every driver has: how problems are run and chosen, in benchdnn's words and some of this library."""

import re

from asmdnn.bench.words import Option, boolean, number, one_of
from asmdnn.errors import InvalidArguments


def _mode(word: str) -> str:
    return one_of("C", "P", "CP", "F", "R", "I", "L")("CP" if word.upper() == "PC" else word)


def _peer(word: str) -> str:
    return one_of("onednn", "mkl", "numpy", "torch", "none")(word) if word != "none" else ""


def _milliseconds(word: str) -> int:
    """benchdnn writes 3e3 too."""
    return number(1)(str(int(float(word))) if re.fullmatch("[0-9]{1,9}[.]?[0-9]{0,9}(e[0-9])?", word) else word)


def _gigaflop(word: str) -> float:
    if not re.fullmatch("[0-9]{1,9}([.][0-9]{1,9})?", word):
        raise InvalidArguments("must be a number, 10^9 operations")
    return float(word)


def _engine(word: str) -> str:
    return one_of("cpu", "gpu")(word.partition(":")[0])


def _names(word: str) -> tuple[str, ...]:
    return tuple(name for name in word.split(",") if name)


def _threads(word: str) -> int:
    """benchdnn's THREADS[:CORE_TYPE[:THREADS_PER_CORE]]."""
    threads = word.partition(":")[0]
    return 0 if threads == "auto" else number(0)(threads)


def _pattern(word: str) -> str:
    try:
        re.compile(word)
    except re.error as error:
        raise InvalidArguments(f"is no regular expression: {error}") from None
    return word


def _isa(word: str) -> str:
    return "" if word.lower() == "best" else word


def _summary(word: str) -> bool:
    return one_of("no-failures", "failures")(word.rpartition("+")[2]) == "failures"


# How a problem is run, not what it is: --reset leaves these as they are, but for the names of implementations.
COMMON: dict[str, Option] = {
    "mode": Option("mode", _mode,
                   "C correctness (default), P performance, CP both, F a fast P, R run, I create, L list",
                   describes=False),
    "isa": Option("isa", _isa, "avx2, avx512_core, ...; default, or best: the best that this machine has"),
    "threads": Option("threads", _threads, "default: the OpenMP thread count"),
    "peer": Option("peer", _peer, "also run this library, in the same process: onednn; gemm: mkl, numpy; rnn: torch"),
    "max-ms-per-prb": Option("max_ms", _milliseconds, "time for the measurements of one problem (3000)"),
    "fix-times-per-prb": Option("rounds", number(0), "so many measurements instead, 0 (default): as time allows"),
    "impl": Option("impl", _names, "only implementations with one of these in their names", show=",".join),
    "skip-impl": Option("skip_impl", _names, "none of these implementations", show=",".join),
    "match": Option("match", _pattern, "only problems with this regular expression in their words", describes=False),
    "start": Option("start", number(0), "leave out so many problems", describes=False),
    "repeats-per-prb": Option("repeats", number(1), "run each problem so often (1)", describes=False),
    "mem-check": Option("check_memory", boolean, "false: also what does not fit into memory", describes=False),
    "max-gflop-per-prb": Option("max_gflop", _gigaflop, "leave out problems of more floating-point operations; 0: none",
                                describes=False),
    "engine": Option("engine", _engine, "cpu (default); problems of gpu are skipped"),
    "verbose": Option("verbose", number(0), "or -vN; 1: print each problem before it runs", describes=False),
    "summary": Option("failures", _summary, "no-failures: end without the list of failures", describes=False),
}  # fmt: skip
RESET = frozenset(("impl", "skip_impl"))  # fields
SYNONYMS = {
    "max-ms": "max-ms-per-prb", "global-impl": "impl", "global-skip-impl": "skip-impl", "ctx-exe": "threads",
    "idt": "sdt", "odt": "ddt", "itag": "stag", "otag": "dtag", "ifmt": "stag", "ofmt": "dtag",  # of older files
}  # fmt: skip
