"""CPU features of code as a whole, which functions are held to."""

import pytest

from asmdnn.corpus.families import files, specs_of
from asmdnn.proof.decoder import fact_at, features_of
from tests.generators.codes import code_of

SAMPLE = [sorted(specs_of(file), key=lambda spec: spec.name)[0] for file in files()]


@pytest.mark.parametrize("spec", SAMPLE, ids=lambda spec: spec.name)
def test_features_are_those_of_all_instructions(spec: object) -> None:
    code = code_of(spec)  # type: ignore[arg-type]
    assert code.listing
    facts = [fact_at(code.data, line.offset) for line in code.listing]
    last = code.listing[-1]
    assert code.code_bytes == last.offset + len(last.data)
    assert features_of(code.data[: code.code_bytes]) == frozenset().union(*(fact.features for fact in facts if fact))


def test_of_bytes_that_are_no_instruction_nothing_is_said() -> None:
    assert features_of(b"\x90\x06") is None
    assert features_of(b"") == frozenset()
