"""The context: what the executor is told, as int64 words; `runtime/context.py` fills it.

| context word (int64) | what it is |
|---|---|
| 0 THREAD_NUM  | address of int omp_get_thread_num(void); 0 to run the whole team's work on the calling thread |
| 1 NUM_THREADS | address of int omp_get_num_threads(void) |
| 2 BARRIER     | address of void GOMP_barrier(void) |
| 3 PARTS       | number of parts that the records of every phase are split into |
| 4 PHASES      | number of phases, > 0; then for each phase: |
| + 0 RECORDS   | address of its records, int64[.., 1 + arguments]: a kernel's index, the offset of every argument |
| + 1 SHARES    | address of its shares, for each part a row as below |
| + 2 KERNELS   | address of the table of its kernels' addresses |
| + 3 BARRIER   | nonzero if a barrier stands before the phase |
| + 4 MXCSR     | the control word that its kernels run under |
| + 5 STARTS    | address of int64[rounds, arguments]: what each round adds to an argument; 0 if nothing is ever added |
| + 6 PART_BYTES | address of int64[arguments]: what part i adds i times; where there are STARTS |
| + 7 ARGUMENTS | number of its arguments, at most those that the executor is made for |
| + 8 ..        | the base address of every argument; each phase has as many words as the executor has arguments |

A share is int64[8]: the first round, the first record in it, the last round, the end in that one; and as they are
walked, maybe backwards: from a record to the next one, the first record of a round, its end, from a round to the next.

Records are bytes from RECORDS, rounds bytes from STARTS.
"""

from enum import IntEnum

WORD = 8


class Context(IntEnum):
    """Words of the context, see above."""

    THREAD_NUM = 0
    NUM_THREADS = 1
    BARRIER = 2
    PARTS = 3
    PHASES = 4


class PhaseWord(IntEnum):
    """Words of a phase, in front of its bases."""

    RECORDS = 0
    SHARES = 1
    KERNELS = 2
    BARRIER = 3
    MXCSR = 4
    STARTS = 5
    PART_BYTES = 6
    ARGUMENTS = 7


class ShareWord(IntEnum):
    """Words of a share, see above."""

    FIRST_ROUND = 0
    FIRST = 1
    LAST_ROUND = 2
    LAST_END = 3
    STEP = 4
    BEGIN = 5
    END = 6
    NEXT = 7


CONTEXT_WORDS = len(Context)
PHASE_WORDS = len(PhaseWord)  # and one for every argument of the executor
ARGUMENTS = tuple(word.name.lower() for word in Context)
