"""What depends on the instruction set: detection of the CPU, ISA levels, the assembler and its instructions."""
