"""Work that several threads do at once."""

import threading
from collections.abc import Callable


def at_once(work: Callable[[int], None], threads: int = 4) -> None:
    """`work` with 0, 1 and so on, each in a thread of its own, until all have ended; what one raises fails its test."""
    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
