"""What other programs do beside a measurement is seen, and said once it is surely more than a machine at rest does."""

import io
import subprocess
import sys
import time

import pytest

from asmdnn.runtime import other_work
from asmdnn.runtime.other_work import OtherWork, busy_seconds


def test_the_work_of_others_is_seen() -> None:
    before, own = busy_seconds(), time.process_time()
    script = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.5: pass"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert busy_seconds() - before > 0.3
    assert time.process_time() - own < 0.3


@pytest.mark.parametrize(
    ("busy", "said"), [(0.0, ""), (1.0, ""), (30.0, "The machine is busy: other programs kept 3.0")]
)
def test_what_is_said_of_ten_seconds(busy: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, work, stream = iter([0.0, 10.0, 10.0]), iter([5.0, 5.0 + busy]), io.StringIO()
    monkeypatch.setattr(other_work, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(other_work, "busy_seconds", lambda: next(work))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    OtherWork().warn(stream)
    assert stream.getvalue().startswith(said) and bool(stream.getvalue()) == bool(said)


def test_a_moment_is_too_short_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tick of a hundredth of a second in 5 ms would be two CPUs."""
    clock, work = iter([0.0, 0.005, 0.005]), iter([0.0, 0.01])
    monkeypatch.setattr(other_work, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(other_work, "busy_seconds", lambda: next(work))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    stream = io.StringIO()
    OtherWork().warn(stream)
    assert not stream.getvalue()
