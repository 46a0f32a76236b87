// Files given on the command line in place of a config's data: their format follows from their names, everything else
// (normalisation, columns) from the config that the model was trained with.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace lockstep {

// csv: NAME.csv; npy: NAME.npy; idx: any other name. A .gz behind it doesn't count.
std::string kind_of_file(const std::string& name);

// config.data.val, or data.train where there is none, with these files in the place of its own: one table, or samples
// and targets. Error: another number of files than the format has, or files of two formats.
DatasetConfig with_files(const Config& config, const std::vector<std::string>& files);

// Relative names of data files become absolute where the file lies in `folder` or in the nearest folder above it: a
// checkpoint doesn't know where its run's config lay. Others stay.
void find_data_above(Config& config, const std::string& folder);

}  // namespace lockstep
