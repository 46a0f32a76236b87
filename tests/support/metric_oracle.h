// Validation metrics as plain loops in double, straight from their definitions, and samples to try them on.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::test {

struct Samples {
  int64_t rows = 0, outputs = 0;
  std::vector<float> scores;    // [rows, outputs]
  std::vector<int64_t> labels;  // [rows]
  std::vector<float> values;    // [rows, outputs]
};

// Scores from few different numbers, so that there are ties; the label's score tends to be higher. Class 1 of three or
// more never is a label where `skip_class`.
Samples make_samples(int64_t rows, int64_t outputs, unsigned seed, bool skip_class = false);
// Those of `rows` (indices into `all`), in that order.
Samples pick(const Samples& all, const std::vector<int64_t>& rows);

// Pair by pair; NaN where a class is missing.
double auroc_oracle(const std::vector<double>& scores, const std::vector<bool>& positive);

struct ClassOracle {
  std::vector<double> precision, recall, f1;
  std::vector<std::vector<double>> confusion;
  double accuracy = 0;
};
ClassOracle class_oracle(const Samples& samples);
double top_k_oracle(const Samples& samples, int64_t k);  // by sorting every row
double mse_oracle(const Samples& samples);
double mae_oracle(const Samples& samples);
double r2_oracle(const Samples& samples);

}  // namespace lockstep::test
