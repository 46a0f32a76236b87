// Either batch_size or global_batch_size is given; the other follows.
#include "train/config_batch.h"

#include "core/error.h"

namespace lockstep {
namespace {

std::string prefix(const std::string& where) { return where.empty() ? "" : where + ": "; }

int64_t product(int64_t a, int64_t b, const TrainConfig& train) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw_error("{}the global batch is too large", prefix(train.where));
  return result;
}

}  // namespace

std::string BatchArithmetic::line() const {
  return fmt::format("global batch {} = batch_size {} x {} {} x accumulate {}", global_batch_size, batch_size,
                     virtual_ranks ? "virtual_ranks" : "world_size", replicas, accumulate);
}

BatchArithmetic resolve_batch(const TrainConfig& train, int64_t world_size) {
  constexpr int64_t kDefaultBatchSize = 32;
  if (world_size < 1 || train.accumulate < 1) {
    throw_error("{}expected world_size and accumulate of 1 or more, found {} and {}", prefix(train.where), world_size,
                train.accumulate);
  }
  BatchArithmetic result;
  result.virtual_ranks = train.virtual_ranks.has_value();
  result.replicas = train.virtual_ranks.value_or(world_size);
  result.accumulate = train.accumulate;
  const int64_t micro_batches = product(result.replicas, train.accumulate, train);
  if (!train.global_batch_size) {
    result.batch_size = train.batch_size.value_or(kDefaultBatchSize);
    result.global_batch_size = product(result.batch_size, micro_batches, train);
    return result;
  }
  result.global_batch_size = *train.global_batch_size;
  if (result.global_batch_size % micro_batches != 0) {
    const int64_t below = result.global_batch_size / micro_batches * micro_batches;
    const std::string nearest =
        below == 0 ? fmt::format("{}", micro_batches) : fmt::format("{} or {}", below, below + micro_batches);
    throw_error("{}train.global_batch_size {} is not divisible by {} {} x accumulate {} = {}; nearest: {}",
                prefix(train.where), result.global_batch_size, result.virtual_ranks ? "virtual_ranks" : "world_size",
                result.replicas, train.accumulate, micro_batches, nearest);
  }
  result.batch_size = result.global_batch_size / micro_batches;
  return result;
}

void check_world_size(const Config& config, int64_t launched) {
  const auto& wanted = config.distributed.world_size;
  if (!wanted || *wanted == launched) return;
  throw_error("{}config says distributed.world_size {} but {} rank{} launched (mpirun -np {} ...)",
              prefix(config.distributed.where), *wanted, launched, launched == 1 ? " was" : "s were", *wanted);
}

}  // namespace lockstep
