// Random geometries of an epoch and what training must make of them, by plain loops: one weight w with the loss
// (w x - y)^2 and x = 1, so that a step's gradient is 2 (w - mean of the y of the step). Every y is another number: a
// sample that is lost, or counted twice, or divided by a wrong count, moves the weight.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "data/epoch_order.h"

namespace lockstep::test {

inline double y_of(int64_t row) {
  return std::sin(1.7 * static_cast<double>(row)) + 0.3 * static_cast<double>(row % 5);
}

using Rows = std::vector<int64_t>;
using Deal = std::vector<std::vector<Rows>>;  // [micro-step][rank]

struct Geometry {
  int64_t samples = 1, ranks = 1, batch = 1, accumulate = 1;
  std::string uneven = "exact";
  bool drop_last = false;
  uint64_t seed = 0;

  std::string text() const {
    return fmt::format("{} samples, {} ranks, batch {}, accumulate {}, {}{}, seed {}", samples, ranks, batch,
                       accumulate, uneven, drop_last ? ", drop_last" : "", seed);
  }
  std::string yaml() const {
    Rows rows(static_cast<size_t>(samples));
    std::vector<double> values;
    for (size_t i = 0; i < rows.size(); ++i) values.push_back(y_of(static_cast<int64_t>(i)));
    return fmt::format(
        "model: {{layers: [{{linear: {{out: 1, bias: false}}}}]}}\n"
        "data: {{train: {{kind: synthetic, name: constant, samples: {}, values: [{}]}}}}\n"
        "sampler: {{seed: {}, uneven: {}, drop_last: {}}}\n"
        "train: {{epochs: 2, loss: mse, batch_size: {}, accumulate: {}}}\n"
        "optimizer: {{kind: sgd, lr: 0.1}}\n",
        samples, fmt::join(values, ", "), seed, uneven, drop_last, batch, accumulate);
  }
  // The epoch's list, dealt position by position.
  Deal deal(int64_t epoch) const {
    Rows list(static_cast<size_t>(samples));
    epoch_order({.seed = seed}, epoch, list);
    const Rows order = list;
    if (uneven == "pad")
      while (static_cast<int64_t>(list.size()) % ranks != 0) list.push_back(order[list.size() % order.size()]);
    if (uneven == "drop")
      while (static_cast<int64_t>(list.size()) % ranks != 0) list.pop_back();
    Deal micro_steps;
    for (size_t at = 0; at < list.size();) {
      std::vector<Rows> of_ranks(static_cast<size_t>(ranks));
      size_t dealt = 0;
      for (int64_t i = 0; i < batch * ranks && at < list.size(); ++i, ++at, ++dealt)
        of_ranks[static_cast<size_t>(i % ranks)].push_back(list[at]);
      if (drop_last && static_cast<int64_t>(dealt) < batch * ranks) break;
      micro_steps.push_back(std::move(of_ranks));
    }
    return micro_steps;
  }
};

inline Geometry random_geometry(std::mt19937& engine, int64_t ranks) {
  const auto pick = [&](int64_t least, int64_t most) { return std::uniform_int_distribution(least, most)(engine); };
  Geometry g;
  g.ranks = ranks;
  g.samples = pick(0, 3) == 0 ? pick(1, ranks + 1) : pick(1, 40);
  g.batch = pick(1, 5);
  g.accumulate = pick(1, 4);
  g.uneven = std::vector<std::string>{"exact", "pad", "drop"}[static_cast<size_t>(pick(0, 2))];
  g.drop_last = pick(0, 4) == 0;
  g.seed = static_cast<uint64_t>(pick(0, 1000));
  return g;
}

// The weight after each optimizer step of one epoch, from `weight` on, and the samples of each step.
struct Expected {
  std::vector<double> weights;
  std::vector<int64_t> samples;
};

inline Expected expected_epoch(const Deal& deal, int64_t accumulate, double weight, double (*target)(int64_t) = y_of) {
  Expected expected;
  for (size_t first = 0; first < deal.size(); first += static_cast<size_t>(accumulate)) {
    double sum = 0;
    int64_t count = 0;
    for (size_t m = first; m < std::min(deal.size(), first + static_cast<size_t>(accumulate)); ++m)
      for (const Rows& rows : deal[m])
        for (int64_t row : rows) sum += 2 * (weight - target(row)), ++count;
    weight -= 0.1 * sum / static_cast<double>(count);
    expected.weights.push_back(weight);
    expected.samples.push_back(count);
  }
  return expected;
}

// Own data: the rows of each rank's own file are numbered rank * 1000 + row, each rank shuffles its own.
struct OwnGeometry {
  std::vector<int64_t> sizes;
  int64_t batch = 1, accumulate = 1;
  std::string early_end = "join";
  bool drop_last = false;

  std::string text() const {
    return fmt::format("own sizes {}, batch {}, accumulate {}, {}{}", fmt::join(sizes, " "), batch, accumulate,
                       early_end, drop_last ? ", drop_last" : "");
  }
  Deal deal(int64_t epoch) const {
    std::vector<Rows> lists;
    int64_t longest = 0, shortest = 1 << 30;
    for (size_t r = 0; r < sizes.size(); ++r) {
      Rows list(static_cast<size_t>(sizes[r]));
      epoch_order({.seed = 0}, epoch, list);
      for (int64_t& row : list) row += static_cast<int64_t>(r) * 1000;
      while (drop_last && static_cast<int64_t>(list.size()) % batch != 0) list.pop_back();
      const int64_t steps = (static_cast<int64_t>(list.size()) + batch - 1) / batch;
      longest = std::max(longest, steps), shortest = std::min(shortest, steps);
      lists.push_back(std::move(list));
    }
    Deal micro_steps;
    for (int64_t m = 0; m < (early_end == "stop" ? shortest : longest); ++m) {
      std::vector<Rows> of_ranks;
      for (const Rows& list : lists) {
        const auto size = static_cast<int64_t>(list.size());
        of_ranks.emplace_back(list.begin() + std::min(m * batch, size), list.begin() + std::min((m + 1) * batch, size));
      }
      micro_steps.push_back(std::move(of_ranks));
    }
    return micro_steps;
  }
  // `files`: a path with {rank} in it, of tables as table() gives.
  std::string yaml(const std::string& files) const {
    return fmt::format(
        "model: {{layers: [{{linear: {{out: 1, bias: false}}}}]}}\n"
        "data: {{train: {{kind: csv, file: \"{}\", header: false}}}}\n"
        "sampler: {{early_end: {}, drop_last: {}}}\n"
        "train: {{epochs: 2, loss: mse, batch_size: {}, accumulate: {}}}\n"
        "optimizer: {{kind: sgd, lr: 0.1}}\n",
        files, early_end, drop_last, batch, accumulate);
  }
  std::string table(int rank) const {
    std::string lines;
    for (int64_t row = 0; row < sizes[static_cast<size_t>(rank)]; ++row)
      lines += fmt::format("1,{}\n", y_of(rank * 1000 + row));
    return lines;
  }
};

inline OwnGeometry random_own(std::mt19937& engine, int64_t ranks) {
  const auto pick = [&](int64_t least, int64_t most) { return std::uniform_int_distribution(least, most)(engine); };
  OwnGeometry g;
  for (int64_t r = 0; r < ranks; ++r) g.sizes.push_back(pick(1, 14));
  g.batch = pick(1, 4);
  g.accumulate = pick(1, 3);
  g.early_end = pick(0, 1) == 0 ? "join" : "stop";
  g.drop_last = pick(0, 3) == 0;
  return g;
}

}  // namespace lockstep::test
