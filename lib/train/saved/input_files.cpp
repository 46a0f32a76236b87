#include "train/saved/input_files.h"

#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "train/config_path.h"

namespace lockstep {

std::string kind_of_file(const std::string& name) {
  std::filesystem::path path(name);
  if (path.extension() == ".gz") path.replace_extension();
  if (path.extension() == ".csv") return "csv";
  if (path.extension() == ".npy") return "npy";
  return "idx";
}

DatasetConfig with_files(const Config& config, const std::vector<std::string>& files) {
  DatasetConfig set = config.data.val ? *config.data.val : config.data.train;
  const std::string kind = kind_of_file(files.front());
  const size_t wanted = kind == "csv" ? 1 : 2;
  if (files.size() != wanted)
    throw_error("--data {}: {} data are {}, found {} file(s)", files.front(), kind,
                kind == "csv"   ? "one table"
                : kind == "npy" ? "two files, x and y"
                                : "two files, images and labels",
                files.size());
  if (kind_of_file(files.back()) != kind)
    throw_error("--data: {} is {} and {} is {}", files.front(), kind, files.back(), kind_of_file(files.back()));
  // A relative path of a config starts elsewhere: these start where the command was given.
  const auto path = [&](size_t index) { return std::filesystem::absolute(files[index]).string(); };
  set.kind = kind;
  set.where = "--data";
  set.first = 0, set.count = -1, set.augment = 1;
  set.seed_per_rank = false;
  set.make = nullptr;
  if (kind == "csv") {
    set.file = path(0);
  } else if (kind == "npy") {
    set.x = path(0), set.y = path(1);
  } else {
    set.images = path(0), set.labels = path(1);
  }
  return set;
}

void find_data_above(Config& config, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;  // what cannot be looked at isn't there
  const fs::path start = fs::absolute(folder, error).lexically_normal();
  for (std::string* name : data_files(config)) {
    if (fs::path(*name).is_absolute()) continue;
    for (fs::path directory = start;; directory = directory.parent_path()) {
      if (fs::is_regular_file(directory / *name, error)) {
        *name = (directory / *name).string();
        break;
      }
      if (directory == directory.parent_path()) break;
    }
  }
}

}  // namespace lockstep
