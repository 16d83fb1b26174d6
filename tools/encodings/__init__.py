"""Which of iced-x86's codes the assembler writes, and who else reads or writes the same bytes: docs/asm-encodings.md.

python -m tools.encodings            # minutes: write the page and the table
"""
