"""The numbers of arguments at which the executor's encodings change, and the most that the corpus has."""

from asmdnn.corpus.families import executors

# 13 to 17: sizes and offsets that no longer fit a signed byte; 31 and 32: a record that no longer fits an unsigned one
COUNTS = (*range(1, 9), *range(13, 18), 31, 32, max(spec.arguments for spec in executors()))
