// Bounds of PyTorch's default initialisation, computed in double exactly as torch.nn.init does.
#include "nn/init.h"

#include <cmath>

#include "core/error.h"

namespace lockstep {

static double checked_fan_in(int64_t fan_in) {
  if (fan_in < 1) throw_error("initialisation: expected a fan-in of at least 1, found {}", fan_in);
  return static_cast<double>(fan_in);
}

void init_kaiming_uniform(Generator& generator, std::span<float> weight, int64_t fan_in) {
  const double slope = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  const double bound = std::sqrt(3.0) * (gain / std::sqrt(checked_fan_in(fan_in)));
  generator.uniform(weight, -bound, bound);
}

void init_bias_uniform(Generator& generator, std::span<float> bias, int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(checked_fan_in(fan_in));
  generator.uniform(bias, -bound, bound);
}

}  // namespace lockstep
