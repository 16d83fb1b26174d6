"""From a spec to the kernel under proof: generated with a listing, and the contract that it is held to."""

from asmdnn.generators.contract import Spec
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.levels import ANY_CPU, isa_of
from asmdnn.proof.kernel import Contract, Kernel


def contract_of(spec: Spec) -> Contract:
    """What the code of the spec may do: what the spec says, and only executors call others."""
    level = None if spec.isa == ANY_CPU else isa_of(spec.isa)
    if isinstance(spec, ExecutorSpec):  # its context is as long as the plan has phases
        return Contract(level, arguments=None, footprint=None, calls=True)
    return Contract(level, len(spec.frame), spec.footprint())


def kernel_of(spec: Spec) -> Kernel:
    """The kernel that the spec generates now.  Raises Unimplemented when PeachPy is missing."""
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    return Kernel(spec.name, contract_of(spec), asm.finish())
