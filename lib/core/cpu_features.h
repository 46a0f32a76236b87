// Which instruction set the running CPU offers; kernels under backend/cpu/isa/ exist once for each of these.
#pragma once

#include <string_view>

namespace lockstep {

enum class Isa { generic, avx2, avx512 };

// The best set of this CPU. LOCKSTEP_MAX_ISA=generic|avx2 in the environment lowers it (tests compare the sets).
Isa detect_isa();
std::string_view name(Isa isa);

// Picks one of three equal-typed tables: static const auto& k = select_isa(isa_generic::k, isa_avx2::k, isa_avx512::k);
template <class Table>
const Table& select_isa(const Table& generic, const Table& avx2, const Table& avx512) {
  switch (detect_isa()) {
    case Isa::avx512: return avx512;
    case Isa::avx2: return avx2;
    case Isa::generic: break;
  }
  return generic;
}

// Denormals flushed to zero in the calling thread (FTZ and DAZ); every thread that computes calls it once.
void flush_denormals();

}  // namespace lockstep
