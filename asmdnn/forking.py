"""What a fork() must wait for: imports that happen while the library works.

Python renews its own locks in a fork()ed child, but not those of single modules.  A child whose parent was importing a
module on another thread waits for ever when it needs that module itself.  What is imported while the library works
(planners of a kind when its first primitive is asked for, PeachPy, what few processes need) is imported under
`importing()`, and a fork waits until that is done: some 0.1 s.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_gate = threading.RLock()  # the thread that forks may itself be importing

# Here and not at the first use: two threads may get there at once, and a registration cannot be taken back.
os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)


@contextmanager
def importing() -> Iterator[None]:
    """Around import statements inside functions; forks of other threads wait."""
    with _gate:
        yield
