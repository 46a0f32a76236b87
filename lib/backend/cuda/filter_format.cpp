#include "backend/cuda/filter_format.h"

namespace lockstep::cuda {
namespace {

// visit(place in the canonical layout, place in cuDNN's)
template <class Visit>
void for_each(const Shape& shape, const Visit& visit) {
  const auto out = static_cast<size_t>(shape[0]), in = static_cast<size_t>(shape[1]),
             taps = static_cast<size_t>(shape[2] * shape[3]);
  for (size_t k = 0; k < out; ++k)
    for (size_t c = 0; c < in; ++c)
      for (size_t tap = 0; tap < taps; ++tap) visit((k * in + c) * taps + tap, (k * taps + tap) * in + c);
}

}  // namespace

void FilterFormat::store(std::span<const float> canonical, std::span<float> stored) const {
  for_each(shape_, [&](size_t from, size_t to) { stored[to] = canonical[from]; });
}

void FilterFormat::load(std::span<const float> stored, std::span<float> canonical) const {
  for_each(shape_, [&](size_t to, size_t from) { canonical[to] = stored[from]; });
}

WeightFormatPtr filter_format(const Shape& canonical) {
  if (canonical[1] == 1 || canonical[2] * canonical[3] == 1) return nullptr;
  return std::make_shared<FilterFormat>(canonical);
}

}  // namespace lockstep::cuda
