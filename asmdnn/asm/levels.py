"""Levels of functions: those of the library, and CPU features besides, as in "avx2+popcnt+sha"."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.isa.code import Code
from asmdnn.isa.cpu import EXTENSIONS, cpu_extensions, cpu_features
from asmdnn.isa.levels import LEVELS, Isa, isa_of
from asmdnn.records import dataclass

# Every CPU of the lowest level has these; they are no level's own, since no kernel uses them.
IMPLIED: Final = frozenset(("sse3", "ssse3", "sse4_1", "sse4_2", "tsc", "cpuid"))


@dataclass(frozen=True)
class FunctionLevel:
    """base: whose vectors there are.  isa: with all features that the code may use."""

    base: str
    isa: Isa

    @property
    def name(self) -> str:
        return str(self.isa.name)

    def missing(self) -> list[str]:
        """The features that this CPU lacks."""
        return sorted(self.isa.features - cpu_features() - cpu_extensions() - IMPLIED)


def level_of(text: str) -> FunctionLevel:
    """The level of a text.  Raises InvalidArguments for an unknown level or feature."""
    base, *extra = text.split("+") if isinstance(text, str) else (text,)
    known = isa_of(base)
    for name in extra:
        if name not in EXTENSIONS:
            near = resembling(name, EXTENSIONS) or "."
            raise InvalidArguments(f"isa {shown(text)} asks for {shown(name)}: known are {', '.join(EXTENSIONS)}{near}")
    features = known.features | IMPLIED | set(extra)
    return FunctionLevel(known.name, Isa(text, known.rank, known.vector_bytes, features))  # type: ignore[arg-type]


def levels_of(isa: str | Sequence[str], name: str) -> tuple[FunctionLevel, ...]:
    """Those that a function is written for.  Raises InvalidArguments for none."""
    found = tuple(level_of(text) for text in ((isa,) if isinstance(isa, str) else isa))
    if not found:
        raise InvalidArguments(f"isa of {name!r} is empty: name a level, such as 'avx2'.")
    return found


def check_features(name: str, level: FunctionLevel, code: Code) -> None:
    """Raises InvalidArguments for an instruction that the level lacks.  Only where iced-x86 is installed."""
    if find_spec("iced_x86") is None:
        return
    from asmdnn.proof.decoder import fact_at, features_of

    needed = features_of(code.data[: code.code_bytes])
    if needed is not None and needed <= level.isa.features:
        return
    for line in code.listing or ():
        fact = fact_at(code.data, line.offset)
        missing = sorted(fact.features - level.isa.features) if fact else []
        if missing:
            what = f"{line.text} ({line.source}) of {name!r} needs {', '.join(missing)}"
            asked = level_with(level, missing)
            if not asked:
                raise InvalidArguments(f"{what}, which no function can ask for: they have {', '.join(EXTENSIONS)}.")
            raise InvalidArguments(f'{what}, which {level.name} lacks: ask for it, isa="{asked}".')


def level_with(level: FunctionLevel, missing: Sequence[str]) -> str:
    """The text of the lowest level that has these features, too; "" if there is none."""
    own = isa_of(level.base).features | set(missing).difference(EXTENSIONS)
    base = next((each.name for each in LEVELS if own <= each.features), "")
    extra = [*level.name.split("+")[1:], *(name for name in missing if name in EXTENSIONS)]
    return "+".join((base, *extra)) if base else ""


def best_of(levels: Sequence[FunctionLevel]) -> FunctionLevel | None:
    """Of those that this CPU has, the highest, and of equal ones that with most features."""
    usable = [level for level in levels if not level.missing()]
    return max(usable, key=lambda level: (level.isa.rank, len(level.isa.features)), default=None)
