// What training will hold in memory on one rank, by part: from the plans and places that the trainer itself would make
// for this config, number of ranks and batch size, without allocating any of it. For `lockstep inspect`, and for
// whoever asks before the first step whether a run fits.
//
// The parts are what Buffer and the data sets hold. Not in them: the program and its libraries (kProgramBytes), what a
// data set needs only while it is read, and what MPI takes for itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "data/data_plan.h"
#include "data/dataset.h"
#include "train/config.h"

namespace lockstep {

// What must be known of a run's data sets.
struct DataFacts {
  Dataset::Info train;
  int64_t validation_samples = 0;  // 0: none
  uint64_t bytes = 0;              // of both, in memory
};
DataFacts data_facts(const Dataset& train, const Dataset* validation);
// Reads the data sets of rank 0 for it.
DataFacts read_data_facts(const Config& config);

// Bytes of rank 0, which has the most: it alone keeps copies for a checkpoint under way.
struct MemoryEstimate {
  struct Part {
    std::string_view name;  // "activations"
    uint64_t bytes;
  };
  uint64_t parameters = 0;     // all, frozen ones too
  uint64_t gradients = 0;      // of those that train; virtual ranks' partial sums
  uint64_t optimizer = 0;      // its state
  uint64_t average = 0;        // train.ema
  uint64_t statistics = 0;     // running means and variances, virtual ranks' and skipped steps' copies
  uint64_t activations = 0;    // the arena: the largest of the graphs that come up, evaluation's among them
  uint64_t weight_copies = 0;  // of the graphs, where precision is bf16 or fp16
  uint64_t loader = 0;         // batches, those assembled ahead too, and the order of an epoch
  uint64_t evaluation = 0;     // its batch and rows
  uint64_t data = 0;           // the data sets
  uint64_t checkpoint = 0;     // the copies that are written while training goes on

  bool evaluation_decides = false;  // the largest graph is evaluation's, at eval.batch_size

  std::vector<Part> parts() const;  // all, in this order
  uint64_t total() const;           // of rank 0
  uint64_t of_other_rank() const { return total() - checkpoint; }
  uint64_t on_node(int64_t ranks) const;  // of a node with rank 0 and ranks - 1 others
};

// Who gets which samples: what the trainer would plan. Error: as the trainer.
DataPlan data_plan(const Config& config, const DataFacts& data, int64_t world_size);

// The batch size is the config's (train.batch_size, or what global_batch_size makes of it). Throws Error for whatever
// the trainer would refuse in the config, the model or the batch arithmetic.
MemoryEstimate estimate_memory(const Config& config, const DataFacts& data, int64_t world_size, Backend& backend);

// What a rank's program takes beside that: code, MPI, oneDNN (measured: 50 to 110 MB).
inline constexpr uint64_t kProgramBytes = uint64_t{128} << 20;

std::string bytes_text(uint64_t bytes);  // "1.5 GiB", "640 B"

}  // namespace lockstep
