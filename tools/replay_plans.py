"""Which plans a change changed: `python -m tools.replay_plans REV` plans all problems at a revision and now.

They are those of the problem sets, of convolutions also gradients and bf16, and the cases of the conformance tests.
Each is planned for three of nine pairs of a level and a CPU class, always the same ones.  Of every problem whose plan
differs, the first field that does is shown: kernels by name, records and costs by digests of their bytes.

--save FILE keeps a digest of the plans now, and FILE in the place of REV compares with it.  Exit status: 0 none
differs, 1 some do, 2 the comparison was not possible.  A refactoring changes none.
"""

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from asmdnn.bench import batch_files
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import Reader
from asmdnn.errors import AsmdnnError, InvalidArguments
from tests.conformance.kinds import KINDS, section  # type: ignore[attr-defined]  # mypy takes the folder of that name
from tools.replay import DIFFERENT, IMPOSSIBLE, ROOT, extract, run_in

COLLECT = Path(__file__).with_name("replay_plans_collect.py")
USAGE = """usage: python -m tools.replay_plans REV: any name of a git commit, such as main or HEAD~3
       python -m tools.replay_plans --save FILE: keep a digest of the plans now; FILE may stand for REV later"""
SECTIONS = ("cases", "emulated", "without post-ops", "exact", "empty")
MORE = ("--dir=BWD_D", "--dt=bf16")  # for the convolutions of problem sets
EVERY = 3  # a problem is planned for every third engine, from one on that its words choose
ENGINES: Mapping[str, Mapping[str, Any]] = {
    " ".join([isa, machine, *(f"{name}={value}" for name, value in words.items())]): {
        "isa": isa, "machine": machine, "threads": 1, **words
    }
    for isa, machine, words in (
        ("avx2", "zen3", {}),
        ("avx2", "haswell", {"threads": 4}),
        ("avx2_vnni", "alder_lake", {"threads": 8}),
        ("avx512_core", "skylake_sp", {"deterministic": "batch"}),
        ("avx512_core_vnni", "icelake_sp", {}),
        ("avx512_core_bf16", "zen4", {}),
        ("avx512_core_bf16", "zen5", {"threads": 8}),
        ("avx512_core_fp16", "sapphire_rapids", {}),
        ("avx512_core_amx", "sapphire_rapids", {"threads": 2}),
    )
}  # fmt: skip
MOST_SHOWN = 40  # problems

Digests = dict[str, Any]  # what replay_plans_collect.py prints


@dataclass(frozen=True, slots=True)
class Difference:
    """Of a problem: the engines whose plans differ, and of the first of them the field that does, old and new."""

    problem: str
    engines: tuple[str, ...]
    field: str
    old: str
    new: str

    def __str__(self) -> str:
        others = f" and {len(self.engines) - 1} more" if len(self.engines) > 1 else ""
        return f"{self.problem}\n  {self.engines[0]}{others}: {self.field}\n    - {self.old}\n    + {self.new}"


def main(arguments: Sequence[str]) -> int:
    try:
        match arguments:
            case ["--save", file]:
                return save(file)
            case [name] if name not in ("-h", "--help", "--save"):
                return against(name)
    except AsmdnnError as error:
        print(f"replay_plans: {error}", file=sys.stderr)
        return IMPOSSIBLE
    print(USAGE)
    return 0 if arguments and arguments[0] in ("-h", "--help") else IMPOSSIBLE


def save(file: str) -> int:
    found = collect(ROOT, "the working tree", problems())
    try:
        Path(file).write_bytes(gzip.compress(json.dumps(found).encode(), mtime=0))
    except OSError as error:
        raise InvalidArguments(f"{file} cannot be written: {error.strerror}") from None
    print(f"{file}: plans of {len(found['problems'])} problems")
    return 0


def against(name: str) -> int:
    """Compare with a file, or else a revision."""
    wanted = problems()
    old = saved(Path(name)) if Path(name).is_file() else collected_at(name, wanted)
    new = collect(ROOT, "the working tree", wanted)
    found = differences(old, new)
    for line in report(found, old, new, name):
        print(line)
    return DIFFERENT if found else 0


def saved(path: Path) -> Digests:
    try:
        found: Digests = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise InvalidArguments(f"{path} is no digest of plans: make one with --save {path} ({error})") from None
    return found


def collected_at(revision: str, wanted: Sequence[Sequence[str]]) -> Digests:
    with tempfile.TemporaryDirectory() as folder:
        extract(revision, Path(folder))
        return collect(Path(folder), revision, wanted)


def collect(tree: Path, title: str, wanted: Sequence[Sequence[str]]) -> Digests:
    """The plans of a tree, made in a process of its own.  Raises InvalidArguments."""
    given = {"problems": [(words, engines_of(words)) for words in wanted], "engines": ENGINES}
    found: Digests = run_in(tree, COLLECT, given, f"the plans of {title} cannot be made")
    return found


def problems() -> list[list[str]]:
    """The words of each, of which two that differ in a name are one."""
    found = dict[tuple[str, ...], None]()
    for name in batch_files.problem_sets():
        for more in ("", *MORE):
            found |= dict.fromkeys(map(words_of, read([*more.split(), f"--batch={name}"])))
    for kind in KINDS:
        for each in SECTIONS:
            found |= dict.fromkeys(map(words_of, read([f"--{kind}", *section(kind, each).split()])))
    return [list(words) for words in found]


def engines_of(words: Sequence[str]) -> list[str]:
    names = list(ENGINES)
    return names[crc32(" ".join(words).encode()) % EVERY :: EVERY]


def read(words: Sequence[str]) -> list[AnyCase]:
    reader = Reader()
    reader.read(words, Path())
    return reader.cases


def words_of(case: AnyCase) -> tuple[str, ...]:
    """The words that repeat it, without the problem's name."""
    problem = str(case.problem)
    options = str(case).removesuffix(problem)
    return (*options.split(), problem.partition('n"')[0].removesuffix("_"))


def differences(old: Digests, new: Digests) -> list[Difference]:
    """Of the problems that both have, on the engines that both have."""
    found = []
    for problem, engines in new["problems"].items():
        before = old["problems"].get(problem, {})
        differing = tuple(name for name in engines if before.get(name, engines[name]) != engines[name])
        if differing:
            fields = (of["plans"][of["problems"][problem][differing[0]]] for of in (old, new))
            found.append(Difference(problem, differing, *first_difference(*fields)))
    return found


def first_difference(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, str, str]:
    """The field, and both texts; where one has none, that it is absent."""
    for field in [*old, *(field for field in new if field not in old)]:
        if old.get(field) != new.get(field):
            return field, old.get(field, "absent"), new.get(field, "absent")
    return "order of fields", ", ".join(old), ", ".join(new)


def report(found: Sequence[Difference], old: Digests, new: Digests, name: str) -> Iterator[str]:
    """The differences, then the verdict."""
    yield from map(str, found[:MOST_SHOWN])
    if len(found) > MOST_SHOWN:
        yield f"... and {len(found) - MOST_SHOWN} more"
    before, now = old["problems"].keys(), new["problems"].keys()
    differ = f"{len(found)} of {len(before & now)} problems differ" if found else f"none of {len(now)} problems differs"
    yield f"{differ} from {name}; {len(now - before)} are new, {len(before - now)} are gone"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
