// What predict writes: a CSV table or a NumPy array, sample by sample in the order of the input. The file appears under
// its name when it is complete. Columns and shapes are documented in docs/after_training.md.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "backend/loss_ops.h"

namespace lockstep {

struct PredictionFormat {
  LossSpec::Kind loss = LossSpec::Kind::cross_entropy;  // what the outputs mean
  int64_t samples = 0, outputs = 0;
  bool scores = false;             // the network's own outputs instead of probabilities
  std::vector<std::string> names;  // of the samples; empty: they are numbered
};

class PredictionFile {
 public:
  // Error: a name that ends in neither .csv nor .npy, a file that cannot be written.
  PredictionFile(std::string path, PredictionFormat format);
  ~PredictionFile();  // unfinished: nothing is left
  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;

  // The next samples' outputs, [n, outputs].
  void add(std::span<const float> outputs);
  void finish();

 private:
  void begin_csv();
  void begin_npy();
  void add_line(std::span<const float> outputs, std::span<const float> told);
  // What is told of a sample: probabilities of classes or of each output, the outputs themselves.
  void tell(std::span<const float> outputs, std::span<float> told) const;

  std::string path_, growing_;
  PredictionFormat format_;
  bool table_ = true;
  std::ofstream file_;
  std::vector<float> told_;
  int64_t written_ = 0;
};

}  // namespace lockstep
