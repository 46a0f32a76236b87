#include "comm/communicator.h"

namespace lockstep {

void Communicator::finish_sums() {
  for (const std::span<float> values : waiting_sums_) all_reduce_sum(values);
  waiting_sums_.clear();
}

}  // namespace lockstep
