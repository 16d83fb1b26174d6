"""Sums over decision trees, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.tree_ensemble import schedule
from asmdnn.primitives.tree_ensemble.description import TreeEnsemble


def words(desc: TreeEnsemble) -> Words:
    return Words("tree_ensemble", f"alg:{desc.aggregate} trees:{desc.trees}", f"{dims_word(desc.src)}:{desc.columns}")


KINDS = (Kind(TreeEnsemble, (schedule.plans,), words, any_batch_refusal=by_rows),)
