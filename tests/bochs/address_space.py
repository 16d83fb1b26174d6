"""The memory of this process as the memory of an emulated CPU: the same addresses, the same pages.

Bochs has 40 bits of physical addresses, a process 47 of virtual ones.  So the guest's page tables map each GiB in which
this process has memory to a GiB of its own, in the order in which they were met; of these Bochs asks for pages one by
one, when the guest first touches them.
"""

import ctypes
import re
from bisect import bisect_right

import bochscpu.memory as bochs

PAGE, GIB = 1 << 12, 1 << 30
ENTRIES = 512  # of a page table, 8 bytes each
PRESENT_WRITABLE_USER, LARGE = 0x07, 0x80
USER_BITS = 47
LARGEST_GIB = 64  # a mapping beyond is address space that something has reserved
_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (r?)")


class AddressSpace:
    """Page tables at `root`, and what they lead to."""

    def __init__(self) -> None:
        self._tables = 0
        self._gibs: list[int] = []  # gibs[n]: its memory is at physical GiB n + 1
        self._known: set[int] = set()
        self._directories: dict[int, int] = {}  # where the entries of 512 GiB lie in this process
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.root, self._root_at = self._new_table()

    def refresh(self) -> None:
        """Look up what this process has mapped."""
        self._starts, self._ends = [], []
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                found = _LINE.match(line)
                assert found, line
                start, end = int(found[1], 16), int(found[2], 16)
                if end >> USER_BITS or end - start > LARGEST_GIB * GIB or not found[3]:
                    continue
                self._starts.append(start)
                self._ends.append(end)
                for gib in range(start // GIB, -(-end // GIB)):
                    self._map(gib)

    def provide(self, physical: int) -> int | None:
        """Give Bochs the page of a physical address; the virtual address if this process cannot read there."""
        number, offset = divmod(physical, GIB)
        page = self._gibs[number - 1] * GIB + offset // PAGE * PAGE
        i = bisect_right(self._starts, page) - 1
        if i < 0 or page >= self._ends[i]:
            bochs.page_insert(physical // PAGE * PAGE, bochs.allocate_host_page())
            return page
        bochs.page_insert(physical // PAGE * PAGE, page)
        return None

    def _new_table(self) -> tuple[int, int]:
        physical, at = self._tables, int(bochs.allocate_host_page())
        self._tables += PAGE
        ctypes.memset(at, 0, PAGE)
        bochs.page_insert(physical, at)
        return physical, at

    def _map(self, gib: int) -> None:
        if gib in self._known:
            return
        self._known.add(gib)
        self._gibs.append(gib)
        directory, entry = divmod(gib, ENTRIES)
        if directory not in self._directories:
            physical, self._directories[directory] = self._new_table()
            _write(self._root_at, directory, physical | PRESENT_WRITABLE_USER)
        _write(self._directories[directory], entry, len(self._gibs) * GIB | PRESENT_WRITABLE_USER | LARGE)


def _write(table: int, entry: int, value: int) -> None:
    ctypes.c_uint64.from_address(table + 8 * entry).value = value
