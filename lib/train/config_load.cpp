// A file to a Config: text, tree, overrides, tables, then the rules that span sections.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/error.h"
#include "train/config_overrides.h"
#include "train/config_schema.h"
#include "train/config_suggest.h"
#include "train/yaml_parse.h"

namespace lockstep {

// "; did you mean 'mnist_quick.yaml'?", of the files beside it.
static std::string near_files(const std::string& path) {
  constexpr size_t most = 4096;
  const std::filesystem::path wanted(path);
  const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (names.size() < most) names.push_back(entry.path().filename().string());
  }
  return did_you_mean(wanted.filename().string(), names);
}

std::string read_config_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw_error("{}: is a directory; expected a config file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_error("{}: cannot open the config file: {}{}", path, std::strerror(errno), near_files(path));
  // Read by blocks, so that a pipe works and an endless file ends.
  std::string text;
  std::array<char, 1 << 16> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > kMaxYamlBytes) throw_error("{}:1:1: larger than {} bytes", path, kMaxYamlBytes);
  }
  if (file.bad()) throw_error("{}: cannot read the config file", path);
  return text;
}

namespace {

// Position of a nested value, or of the innermost map on the way that exists.
YamlPosition find_position(const YamlNode& root, std::initializer_list<const char*> path) {
  const YamlNode* node = &root;
  for (const char* part : path) {
    const int index = node->find(part);
    if (index < 0) break;
    node = &node->items[static_cast<size_t>(index)];
  }
  return node->at;
}

// The parts of a sequence count what the outermost one counts.
void inherit_per(ScheduleConfig& schedule, const YamlNode& node, const std::string& path) {
  const int index = node.find("schedules");
  for (size_t i = 0; i < schedule.schedules.size(); ++i) {
    ScheduleConfig& part = schedule.schedules[i];
    const YamlNode& entry = node.items[static_cast<size_t>(index)].items[i];
    const std::string part_path = fmt::format("{}.schedules.{}", path, i);
    const MapView view{entry, part_path};
    if (view.has("per") && part.per != schedule.per) view.fail("per", "must be the sequence's: " + schedule.per);
    part.per = schedule.per;
    inherit_per(part, entry, part_path);
  }
}

// What would make a run depend on the number of ranks, which virtual ranks exist to prevent.
void check_virtual_ranks(const YamlNode& root, const Config& config) {
  if (!config.train.virtual_ranks) return;
  const auto refuse = [&](const char* what) {
    fail_at(find_position(root, {"train", "virtual_ranks"}),
            fmt::format("train.virtual_ranks gives every number of ranks the same bits; {} depends on it", what));
  };
  if (!config.distributed.sync) refuse("distributed.sync: false");
  if (config.distributed.compress != "none") refuse("distributed.compress");
  if (config.distributed.batch_norm == "sync") refuse("distributed.batch_norm: sync");
  if (config.run.seed_per_rank) refuse("run.seed_per_rank");
  if (config.data.train.seed_per_rank || (config.data.val && config.data.val->seed_per_rank))
    refuse("data with seed_per_rank");
  const auto draws_in_turn = [](const LayerSpec& layer) { return layer.torch_stream; };
  if (std::ranges::any_of(config.model.layers, draws_in_turn)) refuse("dropout from PyTorch's own stream");
}

void check_across(const YamlNode& root, Config& config) {
  check_virtual_ranks(root, config);
  const int schedule = root.find("schedule");
  if (schedule >= 0) inherit_per(config.schedule, root.items[static_cast<size_t>(schedule)], "schedule");
  const bool scheduled = config.schedule.kind == "one_cycle" && config.schedule.cycle_momentum;
  const bool momentum = config.optimizer.momentum > 0 || scheduled;
  if (config.optimizer.nesterov && !momentum) {
    fail_at(find_position(root, {"optimizer", "nesterov"}), "optimizer.nesterov needs momentum above 0");
  }
  if (config.optimizer.dampening != 0 && !momentum) {
    fail_at(find_position(root, {"optimizer", "dampening"}), "optimizer.dampening has no effect without momentum");
  }
  if (config.schedule.kind == "plateau" && config.schedule.metric.starts_with("val.") && !config.data.val) {
    fail_at(find_position(root, {"schedule", "metric"}),
            "schedule.metric is " + config.schedule.metric + " but there is no data.val");
  }
  if (config.train.early_stopping && (!config.data.val || config.eval.every.kind == Period::Kind::never)) {
    fail_at(find_position(root, {"train", "early_stopping"}),
            std::string("train.early_stopping needs evaluations, but ") +
                (config.data.val ? "eval.every is never" : "there is no data.val"));
  }
}

}  // namespace

std::string Period::str() const {
  if (kind == Kind::never) return "never";
  return fmt::format("{} {}{}", n, kind == Kind::epochs ? "epoch" : "step", n == 1 ? "" : "s");
}

Config parse_config(const std::string& text, const std::string& path, const std::vector<std::string>& overrides) {
  YamlNode root = parse_yaml(text, path);
  const bool is_nothing = root.kind == YamlNode::Kind::empty || root.kind == YamlNode::Kind::null;
  if (is_nothing) fail_at(root.at, "the file is empty; a config needs model and data");
  if (root.kind != YamlNode::Kind::map) {
    fail_at(root.at, fmt::format("expected a map of sections at the top level, found {}", root.describe()));
  }
  for (const std::string& assignment : overrides) apply_override(root, assignment);
  Config config;
  config.path = path;
  read_map(root_schema(), root, "", &config);
  check_across(root, config);
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_config(read_config_file(path), path, overrides);
}

}  // namespace lockstep
