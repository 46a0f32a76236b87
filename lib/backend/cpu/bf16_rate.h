// Whether AVX-512's dot products of bf16 pay on this CPU.
#pragma once

namespace lockstep {

// How many times the multiply-adds of fp32 the CPU gets done with VDPBF16PS: 2 where the instruction is at home (AMD
// from Zen 4 on, Cooper Lake), 0.5 on Intel's CPUs with AMX, which have it only to be compatible: there fp32 is faster
// where AMX may not be used, in a virtual machine that hides it. Measured once per process, in about 0.2 ms. Must not
// be called where the CPU has no AVX-512 bf16.
double bf16_dot_product_gain();

}  // namespace lockstep
