"""From a spec to the kernel under proof: generated with a listing, and the contract that its kind has."""

from typing import Final

from asmdnn.corpus.families import Spec
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.footprint import Footprint
from asmdnn.generators.probes.bandwidth import BandwidthSpec, ClockSpec
from asmdnn.generators.probes.peak import PeakSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.levels import isa_of
from asmdnn.proof.kernel import Contract, Kernel

NOTHING: Final = Footprint(reads=(), writes=())


def contract_of(spec: Spec) -> Contract:
    """What a kernel of this kind is held to."""
    if isinstance(spec, ExecutorSpec):
        return Contract(None, arguments=None, footprint=None, calls=True)
    if isinstance(spec, BandwidthSpec):
        return Contract(isa_of(spec.isa), len(spec.frame), footprint=None)
    if isinstance(spec, PeakSpec | ClockSpec):
        return Contract(isa_of(spec.isa), len(spec.frame), footprint=NOTHING)
    return Contract(isa_of(spec.isa), len(spec.frame), spec.footprint())


def kernel_of(spec: Spec) -> Kernel:
    """The kernel that the spec generates now.  Raises Unimplemented when PeachPy is missing."""
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    return Kernel(spec.name, contract_of(spec), asm.finish())
