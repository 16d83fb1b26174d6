"""AVX512_FP16: arithmetic on 16-bit floats in vectors, scalars and pairs that are complex numbers.

Source: Intel's architecture instruction set extensions reference, AVX512-FP16.  notation.py reads the lines.
"""

from typing import Final

LINES: Final = """
V{ADD,MUL,SUB,DIV}PH                EVEX.MAP5.W0 {58,59,5C,5E}                   v{k}{z}, v, v/m/b16, {er}
V{MIN,MAX}PH                        EVEX.MAP5.W0 {5D,5F}                         v{k}{z}, v, v/m/b16, {sae}
V{ADD,MUL,SUB,DIV}SH                EVEX.LIG.F3.MAP5.W0 {58,59,5C,5E}            x{k}{z}, x, x/m16, {er}
V{MIN,MAX}SH                        EVEX.LIG.F3.MAP5.W0 {5D,5F}                  x{k}{z}, x, x/m16, {sae}
VSCALEFPH                           EVEX.66.MAP6.W0 2C                           v{k}{z}, v, v/m/b16, {er}
VSCALEFSH                           EVEX.LIG.66.MAP6.W0 2D                       x{k}{z}, x, x/m16, {er}
VFMADDSUB{132,213,231}PH            EVEX.66.MAP6.W0 {96,A6,B6}                   v{k}{z}, v, v/m/b16, {er}
VFMSUBADD{132,213,231}PH            EVEX.66.MAP6.W0 {97,A7,B7}                   v{k}{z}, v, v/m/b16, {er}
VFMADD{132,213,231}PH               EVEX.66.MAP6.W0 {98,A8,B8}                   v{k}{z}, v, v/m/b16, {er}
VFMSUB{132,213,231}PH               EVEX.66.MAP6.W0 {9A,AA,BA}                   v{k}{z}, v, v/m/b16, {er}
VFNMADD{132,213,231}PH              EVEX.66.MAP6.W0 {9C,AC,BC}                   v{k}{z}, v, v/m/b16, {er}
VFNMSUB{132,213,231}PH              EVEX.66.MAP6.W0 {9E,AE,BE}                   v{k}{z}, v, v/m/b16, {er}
VFMADD{132,213,231}SH               EVEX.LIG.66.MAP6.W0 {99,A9,B9}               x{k}{z}, x, x/m16, {er}
VFMSUB{132,213,231}SH               EVEX.LIG.66.MAP6.W0 {9B,AB,BB}               x{k}{z}, x, x/m16, {er}
VFNMADD{132,213,231}SH              EVEX.LIG.66.MAP6.W0 {9D,AD,BD}               x{k}{z}, x, x/m16, {er}
VFNMSUB{132,213,231}SH              EVEX.LIG.66.MAP6.W0 {9F,AF,BF}               x{k}{z}, x, x/m16, {er}
VF{,C}MADDCPH                       EVEX.{F3,F2}.MAP6.W0 56                      v{k}{z}, v, v/m/b32, {er}
VF{,C}MADDCSH                       EVEX.LIG.{F3,F2}.MAP6.W0 57                  x{k}{z}, x, x/m32, {er}
VF{,C}MULCPH                        EVEX.{F3,F2}.MAP6.W0 D6                      v{k}{z}, v, v/m/b32, {er}
VF{,C}MULCSH                        EVEX.LIG.{F3,F2}.MAP6.W0 D7                  x{k}{z}, x, x/m32, {er}
VSQRTPH                             EVEX.MAP5.W0 51                              v{k}{z}, v/m/b16, {er}
VSQRTSH                             EVEX.LIG.F3.MAP5.W0 51                       x{k}{z}, x, x/m16, {er}
V{RCP,RSQRT}PH                      EVEX.66.MAP6.W0 {4C,4E}                      v{k}{z}, v/m/b16
V{RCP,RSQRT}SH                      EVEX.LIG.66.MAP6.W0 {4D,4F}                  x{k}{z}, x, x/m16
VGETEXPPH                           EVEX.66.MAP6.W0 42                           v{k}{z}, v/m/b16, {sae}
VGETEXPSH                           EVEX.LIG.66.MAP6.W0 43                       x{k}{z}, x, x/m16, {sae}
V{GETMANT,REDUCE,RNDSCALE}PH        EVEX.0F3A.W0 {26,56,08}                      v{k}{z}, v/m/b16, {sae}, imm8
V{GETMANT,REDUCE,RNDSCALE}SH        EVEX.LIG.0F3A.W0 {27,57,0A}                  x{k}{z}, x, x/m16, {sae}, imm8
VCMPPH                              EVEX.0F3A.W0 C2                              k{k}, v, v/m/b16, {sae}, imm8
VCMPSH                              EVEX.LIG.F3.0F3A.W0 C2                       k{k}, x, x/m16, {sae}, imm8
VFPCLASSPH                          EVEX.0F3A.W0 66                              k{k}, v/m/b16, imm8
VFPCLASSSH                          EVEX.LIG.0F3A.W0 67                          k{k}, x/m16, imm8
V{COMI,UCOMI}SH                     EVEX.LIG.MAP5.W0 {2F,2E}                     x, x/m16, {sae}
VCVT{W,UW}2PH                       EVEX.{F3,F2}.MAP5.W0 7D                      v{k}{z}, v/m/b16, {er}
VCVTPH2{W,UW}                       EVEX.{66.MAP5,MAP5}.W0 7D                    v{k}{z}, v/m/b16, {er}
VCVTTPH2{W,UW}                      EVEX.{66.MAP5,MAP5}.W0 7C                    v{k}{z}, v/m/b16, {sae}
VCVT{DQ,UDQ}2PH                     EVEX.{MAP5,F2.MAP5}.W0 {5B,7A}               h{k}{z}, v/m/b32, {er}
VCVTPH2{DQ,UDQ}                     EVEX.{66.MAP5,MAP5}.W0 {5B,79}               v{k}{z}, h/m/b16, {er}
VCVTTPH2{DQ,UDQ}                    EVEX.{F3.MAP5,MAP5}.W0 {5B,78}               v{k}{z}, h/m/b16, {sae}
VCVT{QQ,UQQ,PD}2PH                  EVEX.{MAP5,F2.MAP5,66.MAP5}.W1 {5B,7A,5A}    q{k}{z}, v/m/b64, {er}
VCVTPH2{QQ,UQQ}                     EVEX.66.MAP5.W0 {7B,79}                      v{k}{z}, q/m/b16, {er}
VCVTTPH2{QQ,UQQ}                    EVEX.66.MAP5.W0 {7A,78}                      v{k}{z}, q/m/b16, {sae}
VCVTPH2PD                           EVEX.MAP5.W0 5A                              v{k}{z}, q/m/b16, {sae}
VCVTPH2PSX                          EVEX.66.MAP6.W0 13                           v{k}{z}, h/m/b16, {sae}
VCVTPS2PHX                          EVEX.66.MAP5.W0 1D                           h{k}{z}, v/m/b32, {er}
VCVTSD2SH                           EVEX.LIG.F2.MAP5.W1 5A                       x{k}{z}, x, x/m64, {er}
VCVTSS2SH                           EVEX.LIG.MAP5.W0 1D                          x{k}{z}, x, x/m32, {er}
VCVTSH2SD                           EVEX.LIG.F3.MAP5.W0 5A                       x{k}{z}, x, x/m16, {sae}
VCVTSH2SS                           EVEX.LIG.MAP6.W0 13                          x{k}{z}, x, x/m16, {sae}
VCVTSH2{SI,USI}                     EVEX.LIG.F3.MAP5.W0 {2D,79}                  r32, x/m16, {er}
VCVTSH2{SI,USI}                     EVEX.LIG.F3.MAP5.W1 {2D,79}                  r64, x/m16, {er}
VCVTTSH2{SI,USI}                    EVEX.LIG.F3.MAP5.W0 {2C,78}                  r32, x/m16, {sae}
VCVTTSH2{SI,USI}                    EVEX.LIG.F3.MAP5.W1 {2C,78}                  r64, x/m16, {sae}
VCVT{SI,USI}2SH                     EVEX.LIG.F3.MAP5.W0 {2A,7B}                  x, x, r32/m32, {er}
VCVT{SI,USI}2SH                     EVEX.LIG.F3.MAP5.W1 {2A,7B}                  x, x, r64/m64, {er}
VMOVSH                              EVEX.LIG.F3.MAP5.W0 10                       x{k}{z}, m16
VMOVSH                              EVEX.LIG.F3.MAP5.W0 11 MR                    m16{k}, x
VMOVSH                              EVEX.LIG.F3.MAP5.W0 10                       x{k}{z}, x, x
VMOVW                               EVEX.128.66.MAP5.W0 6E                       x, r32/m16
VMOVW                               EVEX.128.66.MAP5.W0 7E MR                    r32/m16, x
VMOVW                               EVEX.128.66.MAP5.W1 6E                       x, r64
VMOVW                               EVEX.128.66.MAP5.W1 7E MR                    r64, x
"""
