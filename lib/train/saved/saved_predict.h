// A saved model's predictions for samples without targets, dealt to any number of ranks, in the order of the input.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/saved/prediction_file.h"
#include "train/saved/saved_run.h"

namespace lockstep {

struct PredictionInput {
  std::unique_ptr<Dataset> data;
  std::vector<std::string> names;  // of images; empty: samples are numbered
};
// input: IMAGES (idx), X.npy, TABLE.csv, or a folder of images, normalised and, of a table, with the columns as the
// run's data. empty: the run's validation data. Collective; Error on all ranks: samples of another shape than the
// model's, damaged files.
PredictionInput prediction_input(const SavedRun& run, const std::string& input, Communicator& communicator);

// Batch b of eval.batch_size samples goes to rank b mod size, so a sample meets the same arithmetic on any number of
// ranks. Rank 0 writes. Collective; Error on all ranks, naming a file that cannot be read or written. Returns the
// number of samples.
int64_t predict(const SavedRun& run, const PredictionInput& input, Network& network, bool scores,
                const std::string& path, Communicator& communicator);

}  // namespace lockstep
