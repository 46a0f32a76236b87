// Ranks as threads behind the communicator's interface, so that the thread sanitizer sees what the synchroniser and the
// shared-memory sums do to the gradients. Between any two calls a rank may be held up at random.
#pragma once

#include <chrono>
#include <random>
#include <thread>

#include "comm/communicator.h"
#include "comm/team.h"

namespace lockstep::test {

// Short random sleeps, yields and nothing, other ones on every rank.
class Delays {
 public:
  explicit Delays(unsigned seed) : random_(seed) {}
  void maybe() {
    const unsigned draw = static_cast<unsigned>(random_()) % 8;
    if (draw == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    if (draw <= 2) std::this_thread::yield();
  }

 private:
  std::minstd_rand random_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(SharedReduction& reduction, Team& team, int rank, Delays& delays)
      : reduction_(reduction), team_(team), rank_(rank), delays_(delays) {}

  std::string_view name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return team_.size; }
  // The team's window, once.
  Buffer allocate(size_t bytes) override {
    if (bytes > team_.window.bytes) throw_error("the team's window has {} bytes, not {}", team_.window.bytes, bytes);
    return Buffer(team_.window.copies[static_cast<size_t>(rank_)], bytes, [](void*) {});
  }
  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_in(WireFormat::fp32, values); }
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override {
    delays_.maybe();
    reduction_.all_reduce_sum(team_.window, offset(values), values.size(), wire);
    delays_.maybe();
  }
  void start_sum(std::span<float> values) override { start_sum_in(WireFormat::fp32, values); }
  void start_sum_in(WireFormat wire, std::span<float> values) override {
    delays_.maybe();
    reduction_.background().start(team_.window, offset(values), values.size(), wire);
    delays_.maybe();
  }
  void poll_sums() override {
    delays_.maybe();
    reduction_.background().poll();
    delays_.maybe();
  }
  void finish_sums() override {
    delays_.maybe();
    reduction_.background().finish();
    delays_.maybe();
  }
  void all_reduce(std::span<double> values, ReduceOp op) override { reduction_.all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { reduction_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return reduction_.all_gather(mine);
  }
  void barrier() override { reduction_.barrier(); }

 private:
  size_t offset(std::span<float> values) const { return static_cast<size_t>(values.data() - team_.copy(rank_)); }

  SharedReduction& reduction_;
  Team& team_;
  int rank_;
  Delays& delays_;
};

}  // namespace lockstep::test
