// What a config file says about one data set, as the readers take it. The trainer copies its own DatasetConfig into
// this field by field, so that data/ knows nothing of train/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// What the loss wants: class indices (cross-entropy) or real values (the regression losses, bce_with_logits). none:
// samples alone, to be predicted: no file or column of targets is asked for, and every label is 0.
enum class WantedTargets { automatic, labels, values, none };

struct DatasetSettings {
  std::string kind;                   // idx | csv | npy | synthetic | toy; dataset_kinds() lists them
  std::string images, labels;         // idx: files, plain or gzip
  std::string file;                   // csv
  std::vector<std::string> features;  // csv: column names or 0-based indices; empty: all but the target
  std::string target;                 // csv: column name or 0-based index; empty: the last
  std::string x, y;                   // npy: files
  std::string name;                   // synthetic: synthetic_names() lists them
  int64_t samples = 0, classes = 0;   // synthetic; classes > 0 also is the bound that labels are checked against
  std::vector<int64_t> shape;         // synthetic: sample shape
  uint64_t seed = 0;                  // synthetic: torch.manual_seed of the script that made the data
  bool seed_per_rank = false;         // synthetic: seed + rank; every rank holds its own samples (no sharding)
  std::optional<double> mean, std;    // (x - mean) / std, after scaling to [0, 1] where the file holds bytes
  int64_t first = 0, count = -1;      // a contiguous subset; -1: to the end
  std::string where;                  // file:line:column, put in front of every message

  std::optional<bool> header;  // csv: the first line names the columns; default: it does if it holds no number
  int64_t augment = 1;         // toy: copies of the points, each with its own noise of 0.1 (1: the points)
  int64_t target_width = 1;    // normal_regression: values per sample
  std::vector<double> values;  // identity, constant: the targets, repeated over the samples
  WantedTargets targets = WantedTargets::automatic;
};

}  // namespace lockstep
