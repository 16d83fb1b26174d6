"""Vector instructions that PeachPy lacks: dot products, bf16, bytes and words, Galois fields, hashes, tiles.

Source: Intel manual, volume 2; instruction set extensions reference.  notation.py reads the lines.  VPDPBUSD and its
family exist twice: plain names are AVX512_VNNI's, for every register; names ending in _VEX are AVX_VNNI's, as those of
VCVTNEPS2BF16 are AVX512_BF16's and AVX_NE_CONVERT's.  The two need different CPUs, so the choice is the caller's, not
that of the registers.  Galois fields, carry-less products and AES have one name for both: AVX512VL's form is taken
where the registers need it.
"""

from typing import Final

LINES: Final = """
VPMADD52{L,H}UQ_VEX               VEX.66.0F38.W1 {B4,B5}                       v, v, v/m
VPDP{BUSD,BUSDS,WSSD,WSSDS}         EVEX.66.0F38.W0 {50,51,52,53}                v{k}{z}, v, v/m/b32
VPDP{BUSD,BUSDS,WSSD,WSSDS}_VEX     VEX.66.0F38.W0 {50,51,52,53}                 v, v, v/m
VDPBF16PS                           EVEX.F3.0F38.W0 52                           v{k}{z}, v, v/m/b32
VCVTNE2PS2BF16                      EVEX.F2.0F38.W0 72                           v{k}{z}, v, v/m/b32
VCVTNEPS2BF16                       EVEX.F3.0F38.W0 72                           h{k}{z}, v/m/b32
VCVTNEPS2BF16_VEX                   VEX.F3.0F38.W0 72                            h, v/m
VPDPB{SSD,SSDS}                     VEX.F2.0F38.W0 {50,51}                       v, v, v/m
VPDPB{SUD,SUDS}                     VEX.F3.0F38.W0 {50,51}                       v, v, v/m
VPDPB{UUD,UUDS}                     VEX.0F38.W0 {50,51}                          v, v, v/m
VPDPW{SUD,SUDS}                     VEX.F3.0F38.W0 {D2,D3}                       v, v, v/m
VPDPW{USD,USDS}                     VEX.66.0F38.W0 {D2,D3}                       v, v, v/m
VPDPW{UUD,UUDS}                     VEX.0F38.W0 {D2,D3}                          v, v, v/m
VCVTNE{E,O}PH2PS                    VEX.{66.0F38,0F38}.W0 B0                     v, m
VCVTNE{E,O}BF162PS                  VEX.{F3,F2}.0F38.W0 B0                       v, m
VBCSTNE{SH2PS,BF162PS}              VEX.{66,F3}.0F38.W0 B1                       v, m16
VPOPCNT{B,W}                        EVEX.66.0F38.{W0,W1} 54                      v{k}{z}, v/m
VPOPCNTD                            EVEX.66.0F38.W0 55                           v{k}{z}, v/m/b32
VPOPCNTQ                            EVEX.66.0F38.W1 55                           v{k}{z}, v/m/b64
VPSHUFBITQMB                        EVEX.66.0F38.W0 8F                           k{k}, v, v/m
VPEXPANDB                           EVEX.66.0F38.W0 62                           v{k}{z}, v/c8
VPEXPANDW                           EVEX.66.0F38.W1 62                           v{k}{z}, v/c16
VPCOMPRESSB                         EVEX.66.0F38.W0 63 MR                        v{k}{z}/c8{k}, v
VPCOMPRESSW                         EVEX.66.0F38.W1 63 MR                        v{k}{z}/c16{k}, v
VP{SHLDV,SHRDV}W                    EVEX.66.0F38.W1 {70,72}                      v{k}{z}, v, v/m
VP{SHLDV,SHRDV}D                    EVEX.66.0F38.W0 {71,73}                      v{k}{z}, v, v/m/b32
VP{SHLDV,SHRDV}Q                    EVEX.66.0F38.W1 {71,73}                      v{k}{z}, v, v/m/b64
VP{SHLD,SHRD}W                      EVEX.66.0F3A.W1 {70,72}                      v{k}{z}, v, v/m, imm8
VP{SHLD,SHRD}D                      EVEX.66.0F3A.W0 {71,73}                      v{k}{z}, v, v/m/b32, imm8
VP{SHLD,SHRD}Q                      EVEX.66.0F3A.W1 {71,73}                      v{k}{z}, v, v/m/b64, imm8
VP2INTERSECTD                       EVEX.F2.0F38.W0 68                           k+1, v, v/m/b32
VP2INTERSECTQ                       EVEX.F2.0F38.W1 68                           k+1, v, v/m/b64
GF2P8MULB                           66 0F 38 CF /r                               x, x/m
GF2P8AFFINE{QB,INVQB}               66 0F 3A {CE,CF} /r                          x, x/m, imm8
VGF2P8MULB                          VEX.66.0F38.W0 CF                            v, v, v/m
VGF2P8MULB                          EVEX.66.0F38.W0 CF                           v{k}{z}, v, v/m
VGF2P8AFFINE{QB,INVQB}              VEX.66.0F3A.W1 {CE,CF}                       v, v, v/m, imm8
VGF2P8AFFINE{QB,INVQB}              EVEX.66.0F3A.W1 {CE,CF}                      v{k}{z}, v, v/m/b64, imm8
VPCLMULQDQ                          VEX.66.0F3A.W0 44                            v, v, v/m, imm8
VPCLMULQDQ                          EVEX.66.0F3A.W0 44                           v, v, v/m, imm8
VAES{ENC,ENCLAST,DEC,DECLAST}       VEX.66.0F38.W0 {DC,DD,DE,DF}                 v, v, v/m
VAES{ENC,ENCLAST,DEC,DECLAST}       EVEX.66.0F38.W0 {DC,DD,DE,DF}                v, v, v/m
VSHA512RNDS2                        VEX.256.F2.0F38.W0 CB                        y, y, x
VSHA512MSG1                         VEX.256.F2.0F38.W0 CC                        y, x
VSHA512MSG2                         VEX.256.F2.0F38.W0 CD                        y, y
VSM3MSG{1,2}                        VEX.128.{0F38,66.0F38}.W0 DA                 x, x, x/m
VSM3RNDS2                           VEX.128.66.0F3A.W0 DE                        x, x, x/m, imm8
VSM4{KEY4,RNDS4}                    VEX.{F3,F2}.0F38.W0 DA                       v, v, v/m
AES{ENC,DEC}128KL                   F3 0F 38 {DC,DD} /r                          x, m384
AES{ENC,DEC}256KL                   F3 0F 38 {DE,DF} /r                          x, m512
AES{ENC,DEC}WIDE128KL               F3 0F 38 D8 /{0,1}                           m384
AES{ENC,DEC}WIDE256KL               F3 0F 38 D8 /{2,3}                           m512
ENCODEKEY{128,256}                  F3 0F 38 {FA,FB} /r                          r32, r32
LDTILECFG                           VEX.128.0F38.W0 49 /0                        m512
STTILECFG                           VEX.128.66.0F38.W0 49 /0                     m512
TILELOADD{,T1}                      VEX.128.{F2,66}.0F38.W0 4B RM                t, sib
TILESTORED                          VEX.128.F3.0F38.W0 4B MR                     sib, t
TILERELEASE                         VEX.128.0F38.W0 49 /0
TILEZERO                            VEX.128.F2.0F38.W0 49 R                      t
TDP{BF16PS,FP16PS}                  VEX.128.{F3,F2}.0F38.W0 5C RMV               t, t, t
TDPB{SSD,SUD,USD}                   VEX.128.{F2,F3,66}.0F38.W0 5E RMV            t, t, t
TDPBUUD                             VEX.128.0F38.W0 5E RMV                       t, t, t
TCMM{RL,IM}FP16PS                   VEX.128.{0F38,66.0F38}.W0 6C RMV             t, t, t
PCMPESTR{M,I}64                     66 o64 0F 3A {60,61} /r                      x, x/m, imm8
VPCMPESTR{M,I}64                    VEX.128.66.0F3A.W1 {60,61}                   x, x/m, imm8
VMOVMSK{PS,PD}                      VEX.{0F,66.0F}.W1 50                         r64, v
VPMOVMSKB                           VEX.66.0F.W1 D7                              r64, v
VPEXTRB                             VEX.128.66.0F3A.W1 14 MR                     r64, x, imm8
VPEXTRW                             VEX.128.66.0F.W1 C5                          r64, x, imm8
VEXTRACTPS                          VEX.128.66.0F3A.W1 17 MR                     r64, x, imm8
VPEXTRB                             EVEX.128.66.0F3A.W1 14 MR                    r64, x, imm8
VPEXTRW                             EVEX.128.66.0F.W1 C5                         r64, x, imm8
VEXTRACTPS                          EVEX.128.66.0F3A.W1 17 MR                    r64, x, imm8
VBROADCASTSS                        VEX.128.66.0F38.W0 18                        x, x/m32
VBROADCASTSS                        EVEX.128.66.0F38.W0 18                       x{k}{z}, x/m32
VMOVNTPS                            EVEX.128.0F.W0 2B MR                         m128, x>15
VMOVNTPS                            EVEX.256.0F.W0 2B MR                         m256, y>15
VSQRTPD                             EVEX.128.66.0F.W1 51                         x{k}{z}, m64{1to2}
VSQRTPD                             EVEX.256.66.0F.W1 51                         y{k}{z}, m64{1to4}
"""
