// The gradient of a bias alone, for layers whose weight is frozen: the sum of dy over everything but the channels.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace lockstep {

class BiasSums {
 public:
  // output: [N, C] or [N, C, H, W] with any channel block, as the layer writes it and dy comes.
  explicit BiasSums(const TensorDesc& output);
  // db: [C], overwritten or added to. Sums in double; allocates nothing.
  void run(const void* dy, float* db, bool accumulate);

 private:
  TensorDesc output_;
  std::vector<double> sums_;
  std::vector<float> wide_;  // dy in fp32, where it is stored in 16 bits
};

}  // namespace lockstep
