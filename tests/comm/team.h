// Ranks as threads of one process, and sums whose bits betray another order of addition.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/shm/shared_reduction.h"
#include "support/tree.h"

namespace lockstep::test {

// One team of threads; what each of them threw, by rank.
struct Team {
  int size;
  Buffer memory, arrays;
  SharedWindow window;

  explicit Team(int ranks, size_t window_floats = 20000) : size(ranks) {
    memory = Buffer(std::aligned_alloc(4096, align_up(SharedReduction::memory_bytes(size), 4096)),
                    SharedReduction::memory_bytes(size), [](void* p) { std::free(p); });
    std::memset(memory.data(), 0, memory.bytes());
    window.bytes = align_up(window_floats * sizeof(float), 4096);
    window.id = 1;
    arrays = Buffer::host(window.bytes * static_cast<size_t>(size));
    for (int r = 0; r < size; ++r) window.copies.push_back(static_cast<std::byte*>(arrays.data()) + r * window.bytes);
  }

  float* copy(int rank) const { return reinterpret_cast<float*>(window.copies[rank]); }

  std::vector<std::string> run(const std::function<void(SharedReduction&, int)>& work, double timeout_seconds = 60) {
    std::vector<std::string> errors(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        SharedReduction reduction(static_cast<std::byte*>(memory.data()), r, size, {timeout_seconds, true});
        try {
          work(reduction, r);
        } catch (const std::exception& error) {
          errors[r] = error.what();
          reduction.abort(std::string("failed: ") + error.what());
        }
      });
    }
    for (auto& thread : threads) thread.join();
    return errors;
  }
};

inline float value_of(int rank, size_t i, int round) {
  const float magnitude = i % 3 == 0 ? 1e8f : i % 3 == 1 ? 1.0f : 1e-6f;
  return ((rank + static_cast<int>(i % 7) + round) % 2 == 0 ? 1.0f : -1.0f) * magnitude *
         static_cast<float>(rank + 1 + round % 5);
}

inline float sum_of(int ranks, size_t i, int round) {
  return plain_tree(0, ranks, [&](int r) { return value_of(r, i, round); });
}

inline void fill(float* values, size_t count, int rank, int round) {
  for (size_t i = 0; i < count; ++i) values[i] = value_of(rank, i, round);
}

inline size_t wrong_values(const float* values, size_t count, int ranks, int round) {
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += values[i] != sum_of(ranks, i, round);
  return wrong;
}

inline bool all_well(const std::vector<std::string>& errors) {
  for (const auto& error : errors)
    if (!error.empty()) MESSAGE(error);
  return std::all_of(errors.begin(), errors.end(), [](const auto& e) { return e.empty(); });
}

}  // namespace lockstep::test
