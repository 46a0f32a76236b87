// How gradients travel: as they are, or rounded to 16 bits (to nearest, ties to even). One way of rounding on every
// CPU, so all ranks hold the same bits. NaN stays NaN; what is too large for the format becomes infinite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "comm/failure.h"

namespace lockstep {

enum class WireFormat : uint8_t { fp32, bf16, fp16 };

// none | bf16 | fp16, as distributed.compress names them; throws Error for anything else.
WireFormat parse_wire_format(std::string_view name);
std::string_view name(WireFormat format);  // "fp32", ...
// What an all_reduce_sum in this format is called when ranks compare what they do.
Collective sum_in(WireFormat format);
// Numbers of this magnitude and above become infinite.
float overflow_of(WireFormat format);

// bf16 and fp16 only. The arrays must not overlap.
void pack(WireFormat format, const float* from, uint16_t* to, size_t count);
void unpack(WireFormat format, const uint16_t* from, float* to, size_t count);
// pack and unpack in place; fp32 changes nothing.
void round_to(WireFormat format, std::span<float> values);

}  // namespace lockstep
