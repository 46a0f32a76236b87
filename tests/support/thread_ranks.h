// Ranks as threads of one process, for the code above the communicators: the collectives are those of processes that
// share memory, so overlapping, racing and failing are real, only the launch is not. Delays can be injected.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/run_agreed.h"
#include "comm/shm/shared_reduction.h"
#include "comm/shm/window_shards.h"

namespace lockstep::test {

// Called before every collective operation, with what it is; may sleep.
using Delay = std::function<void(const char* operation)>;

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::byte* shared, int rank, int size, double timeout_seconds, Delay delay)
      : rank_(rank),
        size_(size),
        reduction_(shared, rank, size, {timeout_seconds, true}),
        shards_(reduction_.meeting(), [this](std::span<const float> values) { return window_of(values); }),
        delay_(std::move(delay)) {}

  std::string_view name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  // The arrays live as long as this object: a rank may still read them when their user is gone.
  Buffer allocate(size_t bytes) override {
    if (bytes == 0) return {};
    arrays_.push_back(Buffer::host(bytes));
    void* mine = arrays_.back().data();
    SharedWindow window{.copies = {}, .bytes = bytes, .id = windows_.size() + 1};
    for (const auto& theirs : reduction_.all_gather(std::as_bytes(std::span(&mine, 1)))) {
      std::byte* copy = nullptr;
      std::memcpy(&copy, theirs.data(), sizeof copy);
      window.copies.push_back(copy);
    }
    windows_.push_back(std::make_unique<SharedWindow>(std::move(window)));
    return Buffer(mine, bytes, [](void*) {});
  }
  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_in(WireFormat::fp32, values); }
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override {
    wait_a_little("all_reduce_sum");
    if (const SharedWindow* window = window_of(values)) {
      reduction_.all_reduce_sum(*window, window->offset(rank_, values.data()), values.size(), wire);
    } else {
      reduction_.all_reduce_sum(values, wire);
    }
  }
  void start_sum(std::span<float> values) override { start_sum_in(WireFormat::fp32, values); }
  void start_sum_in(WireFormat wire, std::span<float> values) override {
    wait_a_little("start_sum");
    const SharedWindow* window = window_of(values);
    if (window == nullptr) return defer_sum(wire, values);
    reduction_.background().start(*window, window->offset(rank_, values.data()), values.size(), wire);
  }
  void poll_sums() override {
    wait_a_little("poll_sums");
    reduction_.background().poll();
  }
  void finish_sums() override {
    wait_a_little("finish_sums");
    reduction_.background().finish();
    Communicator::finish_sums();
  }
  void watch_sums(SumWatch* watch) override {
    Communicator::watch_sums(watch);
    reduction_.background().watch(watch);
  }
  Shards* shards() override { return &shards_; }
  void all_reduce(std::span<double> values, ReduceOp op) override { reduction_.all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { reduction_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return reduction_.all_gather(mine);
  }
  void barrier() override { reduction_.barrier(); }
  void abort(const std::string& reason) { reduction_.abort(reason); }

 private:
  const SharedWindow* window_of(std::span<const float> values) const {
    for (const auto& window : windows_)
      if (window->holds(rank_, values)) return window.get();
    return nullptr;
  }
  void wait_a_little(const char* operation) const {
    if (delay_) delay_(operation);
  }

  int rank_, size_;
  std::vector<Buffer> arrays_;
  std::vector<std::unique_ptr<SharedWindow>> windows_;
  SharedReduction reduction_;
  WindowShards shards_;
  Delay delay_;
};

// Runs `work` on `size` ranks at once; the message of each that threw, by rank, else empty. A rank that throws ends the
// others' waiting. No rank waits longer than the time limit.
inline std::vector<std::string> run_ranks(int size, const std::function<void(Communicator&)>& work,
                                          const std::function<Delay(int rank)>& delay_of = {},
                                          double timeout_seconds = 60) {
  const size_t bytes = align_up(SharedReduction::memory_bytes(size), 4096);
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, bytes), std::free);
  std::memset(memory.get(), 0, bytes);
  std::vector<std::unique_ptr<ThreadCommunicator>> ranks;
  for (int r = 0; r < size; ++r)
    ranks.push_back(std::make_unique<ThreadCommunicator>(static_cast<std::byte*>(memory.get()), r, size,
                                                         timeout_seconds, delay_of ? delay_of(r) : Delay()));
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      const auto at = static_cast<size_t>(r);
      try {
        work(*ranks[at]);
      } catch (const PoliteError& error) {  // all ranks throw it, nobody waits
        errors[at] = error.what();
      } catch (const std::exception& error) {
        errors[at] = error.what();
        ranks[at]->abort(std::string("failed: ") + error.what());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

}  // namespace lockstep::test
