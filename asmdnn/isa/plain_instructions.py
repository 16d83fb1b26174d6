"""Instructions on general registers and memory that PeachPy lacks, of user mode: strings, atomics, waits, state.

Source: Intel manual, volume 2; instruction set extensions reference; AMD manual, volume 3, for RDPRU, MONITORX and
MWAITX.  notation.py reads the lines.  MOVABS is what GNU as calls a MOV from or to an address of 64 bits.  String
instructions use rsi, rdi and rcx, and say so in no operand; REP_, REPE_ and REPNE_ in front of one are part of the
name.
"""

from typing import Final

LINES: Final = """
ENDBR{64,32}                                F3 0F 1E {FA,FB}
{MOVSB,CMPSB,STOSB,LODSB,SCASB}             {A4,A6,AA,AC,AE}
{MOVSW,CMPSW,STOSW,LODSW,SCASW}             o16 {A5,A7,AB,AD,AF}
{STOSD,LODSD,SCASD}                         {AB,AD,AF}
{MOVSQ,CMPSQ,STOSQ,LODSQ,SCASQ}             o64 {A5,A7,AB,AD,AF}
REP_{MOVSB,STOSB,LODSB}                     F3 {A4,AA,AC}
REP_{MOVSW,STOSW,LODSW}                     o16 F3 {A5,AB,AD}
REP_{MOVSD,STOSD,LODSD}                     F3 {A5,AB,AD}
REP_{MOVSQ,STOSQ,LODSQ}                     o64 F3 {A5,AB,AD}
{REPE,REPE,REPNE,REPNE}_{CMPSB,SCASB,CMPSB,SCASB}  {F3,F3,F2,F2} {A6,AE,A6,AE}
{REPE,REPE,REPNE,REPNE}_{CMPSW,SCASW,CMPSW,SCASW}  o16 {F3,F3,F2,F2} {A7,AF,A7,AF}
{REPE,REPE,REPNE,REPNE}_{CMPSD,SCASD,CMPSD,SCASD}  {F3,F3,F2,F2} {A7,AF,A7,AF}
{REPE,REPE,REPNE,REPNE}_{CMPSQ,SCASQ,CMPSQ,SCASQ}  o64 {F3,F3,F2,F2} {A7,AF,A7,AF}
{PUSHFQ,POPFQ,SAHF,LAHF,LEAVE,XLATB,INT3}   {9C,9D,9E,9F,C9,D7,CC}
{PUSHF,POPF}                                o16 {9C,9D}
CMP{O,NO,B,NB,Z,NZ,BE,NBE}XADD               VEX.128.66.0F38.W0 {E0,E1,E2,E3,E4,E5,E6,E7} MRV  m32, r32, r32
CMP{S,NS,P,NP,L,NL,LE,NLE}XADD               VEX.128.66.0F38.W0 {E8,E9,EA,EB,EC,ED,EE,EF} MRV  m32, r32, r32
CMP{O,NO,B,NB,Z,NZ,BE,NBE}XADD               VEX.128.66.0F38.W1 {E0,E1,E2,E3,E4,E5,E6,E7} MRV  m64, r64, r64
CMP{S,NS,P,NP,L,NL,LE,NLE}XADD               VEX.128.66.0F38.W1 {E8,E9,EA,EB,EC,ED,EE,EF} MRV  m64, r64, r64
AADD                                        0F 38 FC /r MR                m32, r32
AADD                                        o64 0F 38 FC /r MR            m64, r64
A{AND,XOR,OR}                               {66,F3,F2} 0F 38 FC /r MR     m32, r32
A{AND,XOR,OR}                               o64 {66,F3,F2} 0F 38 FC /r MR  m64, r64
MOVDIRI                                     0F 38 F9 /r MR                m32, r32
MOVDIRI                                     o64 0F 38 F9 /r MR            m64, r64
MOVDIR64B                                   66 0F 38 F8 /r                r64, m512
ENQCMD                                      F2 0F 38 F8 /r                r64, m512
CLDEMOTE                                    0F 1C /0                      m8
PREFETCHIT{0,1}                             0F 18 /{7,6}                  m8
TPAUSE                                      66 0F AE /6                   r32
UMWAIT                                      F2 0F AE /6                   r32
UMONITOR                                    F3 0F AE /6                   r64
MONITORX                                    0F 01 FA
MWAITX                                      0F 01 FB
RDPID                                       F3 0F C7 /7                   r64
RDPRU                                       0F 01 FD
RDPMC                                       0F 33
MCOMMIT                                     F3 0F 01 FA
{RDFSBASE,RDGSBASE,WRFSBASE,WRGSBASE}       F3 0F AE /{0,1,2,3}           r32
{RDFSBASE,RDGSBASE,WRFSBASE,WRGSBASE}       o64 F3 0F AE /{0,1,2,3}       r64
PTWRITE                                     F3 0F AE /4                   r32/m32
PTWRITE                                     o64 F3 0F AE /4               r64/m64
{RDPKRU,WRPKRU}                             0F 01 {EE,EF}
{XEND,XTEST}                                0F 01 {D5,D6}
XABORT                                      C6 F8                         imm8
{XSUSLDTRK,XRESLDTRK}                       F2 0F 01 {E8,E9}
SERIALIZE                                   0F 01 E8
{TESTUI,CLUI,STUI,UIRET}                    F3 0F 01 {ED,EE,EF,EC}
SENDUIPI                                    F3 0F C7 /6                   r64
RDSSPD                                      F3 0F 1E /1                   r32
RDSSPQ                                      o64 F3 0F 1E /1               r64
SAVEPREVSSP                                 F3 0F 01 EA
RSTORSSP                                    F3 0F 01 /5                   m64
WRSSD                                       0F 38 F6 /r MR                m32, r32
WRSSQ                                       o64 0F 38 F6 /r MR            m64, r64
INCSSPD                                     F3 0F AE /5                   r32
INCSSPQ                                     o64 F3 0F AE /5               r64
{FXSAVE,FXRSTOR,XSAVE,XRSTOR,XSAVEOPT}      0F AE /{0,1,4,5,6}            m
{FXSAVE64,FXRSTOR64,XSAVE64,XRSTOR64,XSAVEOPT64}  o64 0F AE /{0,1,4,5,6}  m
XSAVEC                                      0F C7 /4                      m
XSAVEC64                                    o64 0F C7 /4                  m
UD1                                         0F B9 /r                      r32, r32/m
UD1                                         o64 0F B9 /r                  r64, r64/m
UD0                                         0F FF /r                      r32, r32/m
UD0                                         o64 0F FF /r                  r64, r64/m
LAR                                         o16 0F 02 /r                  r16, r16/m16
{LAR,LSL}                                   0F {02,03} /r                 r32, r32/m16
LSL                                         o16 0F 03 /r                  r16, r16/m16
{LAR,LSL}                                   o64 0F {02,03} /r             r64, r64/m16
VER{R,W}                                    0F 00 /{4,5}                  r32/m16
VER{R,W}                                    o16 0F 00 /{4,5}              r16
VER{R,W}                                    o64 0F 00 /{4,5}              r64
{UD0,UD1}                                   o16 0F {FF,B9} /r             r16, r16/m
TPAUSE                                      o64 66 0F AE /6               r64
UMWAIT                                      o64 F2 0F AE /6               r64
UMONITOR                                    a32 F3 0F AE /6               r32
{MONITOR,MWAIT,ENCLU,SYSENTER,GETSEC,RSM}   0F {01 C8,01 C9,01 D7,34,37,AA}
{INT1,CLI,STI,WAIT}                         {F1,FA,FB,9B}
{SLDT,STR}                                  0F 00 /{0,1}                  r32/m16
{SLDT,STR}                                  o16 0F 00 /{0,1}              r16
{SLDT,STR}                                  o64 0F 00 /{0,1}              r64
SMSW                                        0F 01 /4                      r32/m16
SMSW                                        o16 0F 01 /4                  r16
SMSW                                        o64 0F 01 /4                  r64
{SGDT,SIDT}                                 0F 01 /{0,1}                  m
MOV                                         o16 8C /r MR                  r16, seg
MOV                                         8C /r MR                      r32/m16, seg
MOV                                         o64 8C /r MR                  r64, seg
MOV                                         o16 8E /r                     seg-cs, r16
MOV                                         8E /r                         seg-cs, r32/m16
MOV                                         o64 8E /r                     seg-cs, r64
{PUSH,POP}                                  0F {A0,A1}                    fs
{PUSH,POP}                                  0F {A8,A9}                    gs
{LSS,LFS,LGS}                               o16 0F {B2,B4,B5} /r          r16, m
{LSS,LFS,LGS}                               0F {B2,B4,B5} /r              r32, m
{LSS,LFS,LGS}                               o64 0F {B2,B4,B5} /r          r64, m80
ENTER                                       C8                            imm16, imm8
RETF                                        CB
RETF                                        CA                            imm16
RETFQ                                       o64 CB
RETFQ                                       o64 CA                        imm16
IRET                                        o16 CF
{IRETD,IRETQ}                               {CF,o64 CF}
IN                                          E4                            al, imm8
IN                                          o16 E5                        ax, imm8
IN                                          E5                            eax, imm8
IN                                          EC                            al, dx
IN                                          o16 ED                        ax, dx
IN                                          ED                            eax, dx
OUT                                         E6                            imm8, al
OUT                                         o16 E7                        imm8, ax
OUT                                         E7                            imm8, eax
OUT                                         EE                            dx, al
OUT                                         o16 EF                        dx, ax
OUT                                         EF                            dx, eax
{INSB,OUTSB,INSD,OUTSD}                     {6C,6E,6D,6F}
{INSW,OUTSW}                                o16 {6D,6F}
REP_{INSB,OUTSB,INSD,OUTSD}                 F3 {6C,6E,6D,6F}
REP_{INSW,OUTSW}                            o16 F3 {6D,6F}
MOVSXD                                      o16 63 /r                     r16, r16/m16
MOVSXD                                      63 /r                         r32, r32/m32
{MOVZX,MOVSX}                               o16 0F {B7,BF} /r             r16, r16/m16
MOVABS                                      A0                            al, imm64
MOVABS                                      o16 A1                        ax, imm64
MOVABS                                      A1                            eax, imm64
MOVABS                                      o64 A1                        rax, imm64
MOVABS                                      A2                            imm64, al
MOVABS                                      o16 A3                        imm64, ax
MOVABS                                      A3                            imm64, eax
MOVABS                                      o64 A3                        imm64, rax
NOP                                         o16 0F 1F /0                  r16/m16
NOP                                         0F 1F /0                      r32/m32
NOP                                         o64 0F 1F /0                  r64/m64
MOVMSKPS                                    o64 0F 50 /r                  r64, x
MOVMSKPD                                    66 o64 0F 50 /r               r64, x
PMOVMSKB                                    66 o64 0F D7 /r               r64, x
PEXTRB                                      66 o64 0F 3A 14 /r MR         r64, x, imm8
PEXTRW                                      66 o64 0F C5 /r               r64, x, imm8
EXTRACTPS                                   66 o64 0F 3A 17 /r MR         r64, x, imm8
"""
# Opcodes in front of a distance in bytes to a label: 8 bits of it, and 32 bits.
SHORT_BRANCHES: Final = {"LOOP": b"\xe2", "LOOPE": b"\xe1", "LOOPNE": b"\xe0", "JECXZ": b"\x67\xe3"}
NEAR_BRANCHES: Final = {"XBEGIN": b"\xc7\xf8"}
