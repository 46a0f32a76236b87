#include "support/metric_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace lockstep::test {
namespace {

double error(const Samples& s, int64_t row, int64_t output) {
  const auto at = static_cast<size_t>(row * s.outputs + output);
  return static_cast<double>(s.scores[at]) - static_cast<double>(s.values[at]);
}

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace

Samples make_samples(int64_t rows, int64_t outputs, unsigned seed, bool skip_class) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int64_t> step(0, 6), label(0, outputs - 1);
  std::normal_distribution<float> normal(3, 2);
  Samples s{.rows = rows, .outputs = outputs};
  for (int64_t row = 0; row < rows; ++row) {
    int64_t chosen = label(engine);
    if (skip_class && chosen == 1) chosen = 2;
    s.labels.push_back(chosen);
    for (int64_t c = 0; c < outputs; ++c) {
      s.scores.push_back(0.5f * static_cast<float>(step(engine)) + (c == chosen ? 0.5f : 0.0f));
      s.values.push_back(normal(engine));
    }
  }
  return s;
}

Samples pick(const Samples& all, const std::vector<int64_t>& rows) {
  Samples s{.rows = static_cast<int64_t>(rows.size()), .outputs = all.outputs};
  for (const int64_t row : rows) {
    s.labels.push_back(all.labels[static_cast<size_t>(row)]);
    for (auto i = static_cast<size_t>(row * all.outputs); i < static_cast<size_t>((row + 1) * all.outputs); ++i) {
      s.scores.push_back(all.scores[i]);
      s.values.push_back(all.values[i]);
    }
  }
  return s;
}

double auroc_oracle(const std::vector<double>& scores, const std::vector<bool>& positive) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (!positive[i] || positive[j]) continue;
      ++pairs;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return pairs == 0 ? std::numeric_limits<double>::quiet_NaN() : won / pairs;
}

ClassOracle class_oracle(const Samples& s) {
  const auto classes = static_cast<size_t>(s.outputs);
  ClassOracle result;
  result.confusion.assign(classes, std::vector<double>(classes, 0));
  double correct = 0;
  for (int64_t row = 0; row < s.rows; ++row) {
    const auto begin = s.scores.begin() + row * s.outputs;
    const auto predicted = static_cast<size_t>(std::max_element(begin, begin + s.outputs) - begin);
    const auto label = static_cast<size_t>(s.labels[static_cast<size_t>(row)]);
    ++result.confusion[label][predicted];
    correct += label == predicted ? 1 : 0;
  }
  result.accuracy = correct / static_cast<double>(s.rows);
  for (size_t c = 0; c < classes; ++c) {
    double predicted = 0, targets = 0;
    for (size_t other = 0; other < classes; ++other) {
      predicted += result.confusion[other][c];
      targets += result.confusion[c][other];
    }
    const double p = ratio(result.confusion[c][c], predicted), r = ratio(result.confusion[c][c], targets);
    result.precision.push_back(p);
    result.recall.push_back(r);
    result.f1.push_back(ratio(2 * p * r, p + r));
  }
  return result;
}

double top_k_oracle(const Samples& s, int64_t k) {
  double hits = 0;
  for (int64_t row = 0; row < s.rows; ++row) {
    std::vector<int64_t> order(static_cast<size_t>(s.outputs));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      return s.scores[static_cast<size_t>(row * s.outputs + a)] > s.scores[static_cast<size_t>(row * s.outputs + b)];
    });
    hits += std::count(order.begin(), order.begin() + k, s.labels[static_cast<size_t>(row)]) > 0 ? 1 : 0;
  }
  return hits / static_cast<double>(s.rows);
}

double mse_oracle(const Samples& s) {
  double sum = 0;
  for (int64_t row = 0; row < s.rows; ++row) {
    for (int64_t c = 0; c < s.outputs; ++c) sum += error(s, row, c) * error(s, row, c);
  }
  return sum / static_cast<double>(s.rows * s.outputs);
}

double mae_oracle(const Samples& s) {
  double sum = 0;
  for (int64_t row = 0; row < s.rows; ++row) {
    for (int64_t c = 0; c < s.outputs; ++c) sum += std::abs(error(s, row, c));
  }
  return sum / static_cast<double>(s.rows * s.outputs);
}

double r2_oracle(const Samples& s) {
  double total = 0;
  for (int64_t c = 0; c < s.outputs; ++c) {
    double mean = 0, residual = 0, deviation = 0;
    const auto value = [&](int64_t row) {
      return static_cast<double>(s.values[static_cast<size_t>(row * s.outputs + c)]);
    };
    for (int64_t row = 0; row < s.rows; ++row) mean += value(row);
    mean /= static_cast<double>(s.rows);
    for (int64_t row = 0; row < s.rows; ++row) {
      residual += error(s, row, c) * error(s, row, c);
      deviation += (value(row) - mean) * (value(row) - mean);
    }
    total += 1 - residual / deviation;
  }
  return total / static_cast<double>(s.outputs);
}

}  // namespace lockstep::test
