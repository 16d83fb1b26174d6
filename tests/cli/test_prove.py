"""`asmdnn prove`: one line a level, the first violation and its status, and clear words for what is missing."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from asmdnn.cli import dump, prove, prove_tasks
from asmdnn.cli.main import main
from asmdnn.corpus import families
from asmdnn.corpus.families import matching
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.levels import ANY_CPU, LEVELS
from asmdnn.planning.plan import Plan

SMALL = "mb1ic8ih6oc16kh3ph1"
UNTAKEN = ("--alg=wino", "mb1ic8ih6oc16oh3kh3sh2ph1")  # only stride 1 is
LINE = re.compile(
    r"(\w+) +(\d+) kernels +(\d+) instructions +(\d+) plans +[\d.]+ s  proved"
    r"(?:, \d+ accesses proved by argument only)?"
)


def test_a_problem_for_every_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--jobs=1", SMALL]) == 0
    lines = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    assert [line and line[1] for line in lines] == ["avx2", "avx512_core"]
    assert all(line and int(line[2]) >= 1 and int(line[3]) >= 100 and int(line[4]) == 1 for line in lines)


def test_one_level_and_a_list_of_directions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--isa=avx512_core_amx", "--dir=FWD_B,FWD_I", SMALL]) == 0
    line = LINE.fullmatch(capsys.readouterr().out.strip())
    assert line and (line[1], line[4]) == ("avx512_core_amx", "2")


def test_json_has_an_object_for_each_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--json", "--jobs=1", SMALL]) == 0
    proofs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [proof["level"] for proof in proofs] == ["avx2", "avx512_core"]
    for proof in proofs:
        assert proof.keys() == {"level", "kernels", "instructions", "plans", "sets", "unbounded", "seconds"}
        assert proof["kernels"] >= 1 and proof["instructions"] >= 100 and proof["plans"] == 1


@pytest.mark.parametrize("usage", [prove.USAGE, dump.USAGE])
def test_the_pattern_that_the_help_names_matches(usage: str) -> None:
    found = re.search(r"such as --specs='(.+?)'", usage)
    assert found and matching(found[1])


def test_problems_of_other_drivers(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--shuffle", "--dt=u8", "--group=4", "1x48x5x5", "--reorder", "--stag=abcd", "--dtag=acdb", "2x9x5x5"]
    assert main(["prove", "--isa=avx2", *words]) == 0
    line = LINE.fullmatch(capsys.readouterr().out.strip())
    assert line and line[4] == "2"


def test_no_plan_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--isa=avx2", *UNTAKEN]) == 2
    assert "no implementation takes any of these problems at level avx2" in capsys.readouterr().err


def test_what_no_implementation_takes_has_no_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--isa=avx2", *UNTAKEN, "--alg=direct", SMALL]) == 0
    line = LINE.fullmatch(capsys.readouterr().out.strip())
    assert line and line[4] == "1"


def test_a_wrong_kernel_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first one, with its instruction, and nothing after it."""
    right = Assembler.ret

    def wrong(self: Any) -> None:
        self.STD()
        right(self)

    monkeypatch.setattr(Assembler, "ret", wrong)
    assert main(["prove", "--jobs=1", "--isa=avx2", SMALL]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("violation at level avx2: conv_f32_")
    assert "breaks the rule 'direction flag': " in lines[0]
    assert re.match(r" +[0-9a-f]+  c3 +ret +test_prove\.py:\d+$", lines[1])


def test_the_executor_of_a_problem_is_proved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With as many arguments as the problem's chain brings: it is not the corpus's alone."""
    right = ExecutorSpec.run_parts

    def wrong(self: ExecutorSpec, asm: Assembler, state: Any) -> None:
        if self.arguments == 16:
            asm.STD()
        right(self, asm, state)

    monkeypatch.setattr(ExecutorSpec, "run_parts", wrong)
    chain = "+".join(["add:f32:per_oc"] * 9)
    assert main(["prove", "--jobs=1", "--isa=avx2", SMALL]) == 0
    assert main(["prove", "--jobs=1", "--isa=avx2", f"--attr-post-ops={chain}", SMALL]) == 1
    assert "violation at level avx2: executor_16__x86_64 breaks the rule" in capsys.readouterr().out


def test_a_wrong_plan_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right = prove_tasks.plan_of

    def wrong(*words: Any) -> Plan:
        plan = right(*words)
        records = plan.phases[0].records.copy()
        records[-1, 4] += 1 << 20  # dst
        return replace(plan, phases=(replace(plan.phases[0], records=records), *plan.phases[1:]))

    monkeypatch.setattr(prove_tasks, "plan_of", wrong)
    assert main(["prove", "--jobs=1", "--isa=avx2", SMALL]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "breaks the rule 'plan': phase 0, kernel conv_f32_" in line and "of dst are touched" in line


def test_processes_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(prove, "WORTH_A_PROCESS", 1)
    numbers = []
    for jobs in (1, 2):
        assert main(["prove", f"--jobs={jobs}", "--isa=avx2", SMALL]) == 0
        line = LINE.fullmatch(capsys.readouterr().out.strip())
        numbers.append(line and line.groups())
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--isa=pentium",), "isa 'pentium' is not one of avx2, "),
        (("--jobs=0",), "--jobs=0 must be a number of processes"),
        (("--jobs=many",), "--jobs=many must be a number of processes"),
        (("--dir=FWD_I",), "prove: options but no problem are given"),
        (("--batch=none",), "--batch=none: no such file"),
        (("ic3oc4",), "problem 'ic3oc4': a spatial size is missing"),
        (("--nonsense",), "--nonsense: no such option"),
        (("--stag=nchwx", SMALL), "nchwx"),
    ],
)
def test_bad_words(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", *words]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert says in output.err


def test_without_the_decoder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("asmdnn.proof.decoder.find_spec", lambda name: None)
    assert main(["prove", SMALL]) == 2
    output = capsys.readouterr()
    assert output.err == "asmdnn: prove needs the independent decoder iced-x86: pip install iced-x86\n"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--help"]) == 0
    assert capsys.readouterr().out.startswith("asmdnn prove [--isa=LEVEL]")


@pytest.mark.slow
def test_everything(sweep: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample of it."""
    specs, every_case = sweep(families.corpus(), 20), prove.set_cases
    monkeypatch.setattr(families, "corpus", lambda: specs)
    monkeypatch.setattr(prove, "set_cases", lambda first: sweep(every_case(first), 1))
    assert main(["prove"]) == 0
    lines = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    levels = {spec.isa for spec in specs}
    expected = [name for name in (ANY_CPU, *(level.name for level in LEVELS)) if name in levels]
    assert [line and line[1] for line in lines] == expected


def test_kernels_whose_names_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--specs=executor_[12]__*"]) == 0
    line = LINE.fullmatch(capsys.readouterr().out.strip())
    assert line and (line[1], line[2], line[4]) == ("x86_64", "2", "0")
    assert main(["prove", "--specs=gemv_nonsense"]) == 2
    assert "no kernel of the corpus matches 'gemv_nonsense': a name is amx_" in capsys.readouterr().err
    assert main(["prove", "--specs=executor_1__*", SMALL]) == 2
    assert "with problems: leave one of them out" in capsys.readouterr().err
