#include "core/cpu_features.h"

#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep {

static Isa detect_hardware() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::generic;
}

Isa detect_isa() {
  static const Isa isa = [] {
    const Isa hardware = detect_hardware();
    const char* limit = std::getenv("LOCKSTEP_MAX_ISA");
    if (limit == nullptr) return hardware;
    if (std::string_view(limit) == "generic") return Isa::generic;
    if (std::string_view(limit) == "avx2" && hardware == Isa::avx512) return Isa::avx2;
    return hardware;
  }();
  return isa;
}

std::string_view name(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "generic"; }

void flush_denormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

}  // namespace lockstep
