// Where the files named in a config lie.
#include "train/config_path.h"

#include <filesystem>
#include <system_error>

namespace lockstep {

std::string project_root(const std::string& config_path) {
  namespace fs = std::filesystem;
  std::error_code error;  // what can't be looked at isn't there
  const fs::path own = fs::absolute(config_path, error).lexically_normal().parent_path();
  for (fs::path directory = own;; directory = directory.parent_path()) {
    if (fs::is_directory(directory / "datasets", error) || fs::is_directory(directory / "configs", error)) {
      return directory.string();
    }
    if (directory == directory.parent_path()) return own.string();
  }
}

std::string resolve_path(const Config& config, const std::string& path) {
  const std::filesystem::path given(path);
  if (given.is_absolute()) return given.lexically_normal().string();
  return (std::filesystem::path(project_root(config.path)) / given).lexically_normal().string();
}

std::vector<std::string*> data_files(Config& config) {
  std::vector<std::string*> names;
  const auto add = [&](DatasetConfig& data) {
    for (std::string* name : {&data.images, &data.labels, &data.file, &data.x, &data.y}) {
      if (!name->empty()) names.push_back(name);
    }
  };
  add(config.data.train);
  if (config.data.val) add(*config.data.val);
  return names;
}

std::string to_yaml_at(Config config, const std::string& path) {
  if (project_root(path) == project_root(config.path)) return to_yaml(config);
  std::vector<std::string*> names = data_files(config);
  names.push_back(&config.run.dir);
  if (!config.init_from.file.empty()) names.push_back(&config.init_from.file);
  for (std::string* name : names) *name = resolve_path(config, *name);
  return to_yaml(config);
}

}  // namespace lockstep
