"""Commands run their problems at the best level that can be executed here, also as if on another machine."""

import pytest

from asmdnn import environment
from asmdnn.planning.host import executable_isas


@pytest.fixture(autouse=True)
def _executable(monkeypatch: pytest.MonkeyPatch) -> None:
    if isas := executable_isas():
        monkeypatch.setenv(environment.MAX_CPU_ISA, isas[-1].name)
