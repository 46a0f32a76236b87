#include "sweep/sweep_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "train/config_scalar.h"
#include "train/config_schema.h"
#include "train/config_suggest.h"
#include "train/yaml_parse.h"

namespace lockstep {
namespace {

using Kind = YamlNode::Kind;

// What may be written without its section.
constexpr std::array<std::pair<const char*, const char*>, 8> kShort{{{"world_size", "distributed.world_size"},
                                                                     {"batch_size", "train.batch_size"},
                                                                     {"accumulate", "train.accumulate"},
                                                                     {"global_batch_size", "train.global_batch_size"},
                                                                     {"epochs", "train.epochs"},
                                                                     {"max_steps", "train.max_steps"},
                                                                     {"lr", "optimizer.lr"},
                                                                     {"seed", "run.seed"}}};

std::string full_key(const YamlKey& key) {
  for (const auto& [name, full] : kShort)
    if (key.text == name) return full;
  const std::string section = key.text.substr(0, key.text.find('.'));
  if (root_schema().find(section) == nullptr) {
    std::vector<std::string> known;
    for (const auto& [name, full] : kShort) known.emplace_back(name);
    for (const Key& each : root_schema().keys) known.push_back(each.name);
    fail_at(key.at,
            fmt::format("unknown key '{}'{}; a key is dotted, as optimizer.lr, or one of world_size, batch_size, "
                        "accumulate, global_batch_size, epochs, max_steps, lr, seed",
                        printable(section), did_you_mean(section, known)));
  }
  if (key.text == "run" || key.text == "run.dir")
    fail_at(key.at, fmt::format("{}: every trial has a folder of its own below dir", key.text));
  return key.text;
}

std::string flow_text(const YamlNode& node) {
  if (node.kind == Kind::quoted) return nlohmann::json(node.text).dump();
  if (node.kind == Kind::plain)  // in a block, "a, b" needs no quotes
    return node.text.find_first_of(",[]{}#:\"'") == std::string::npos ? node.text : nlohmann::json(node.text).dump();
  if (node.kind == Kind::list || node.kind == Kind::map) {
    std::string text;
    for (size_t i = 0; i < node.items.size(); ++i) {
      if (i > 0) text += ", ";
      if (node.kind == Kind::map) text += nlohmann::json(node.keys[i].text).dump() + ": ";
      text += flow_text(node.items[i]);
    }
    return node.kind == Kind::list ? "[" + text + "]" : "{" + text + "}";
  }
  return "null";
}

Assignment assignment(const YamlKey& key, const YamlNode& value) {
  Assignment made{.name = key.text, .key = full_key(key), .value = flow_text(value), .shown = {}, .at = value.at};
  made.shown = value.is_scalar() ? value.text : made.value;
  return made;
}

void check_map(const YamlNode& node, const std::string& path) {
  if (node.kind != Kind::map || node.items.empty())
    fail_path(node.at, path, fmt::format("expected a map of config keys, found {}", node.describe()));
}

std::vector<Assignment> assignments(const YamlNode& node, const std::string& path) {
  check_map(node, path);
  std::vector<Assignment> made;
  for (size_t i = 0; i < node.items.size(); ++i) made.push_back(assignment(node.keys[i], node.items[i]));
  return made;
}

void check_values(const YamlNode& node, const std::string& path) {
  if (node.kind != Kind::list || node.items.empty())
    fail_path(node.at, path, fmt::format("expected a list of values, found {}", node.describe()));
}

Key custom(std::string name, void (*read)(const YamlNode&, const std::string&, SweepSettings&)) {
  Key key;
  key.name = std::move(name);
  key.read = [read](const YamlNode& node, const std::string& path, void* object) {
    read(node, path, *static_cast<SweepSettings*>(object));
  };
  return key;
}

void read_set(const YamlNode& node, const std::string& path, SweepSettings& sweep) {
  sweep.set = assignments(node, path);
}

void read_grid(const YamlNode& node, const std::string& path, SweepSettings& sweep) {
  check_map(node, path);
  for (size_t i = 0; i < node.items.size(); ++i) {
    check_values(node.items[i], join_path(path, node.keys[i].text));
    std::vector<Assignment>& axis = sweep.grid.emplace_back();
    for (const YamlNode& value : node.items[i].items) axis.push_back(assignment(node.keys[i], value));
  }
}

void read_list(const YamlNode& node, const std::string& path, SweepSettings& sweep) {
  check_values(node, path);
  for (size_t i = 0; i < node.items.size(); ++i)
    sweep.list.push_back(assignments(node.items[i], join_path(path, std::to_string(i))));
}

const Schema& sweep_schema() {
  using S = SweepSettings;
  static const Schema schema = [] {
    Schema made;
    made.keys = {key("config", &S::config, anything(), "").must().also({"base", "base_config"}),
                 key("dir", &S::dir, anything(), "").also({"output", "run_dir"}),
                 custom("set", read_set),
                 custom("grid", read_grid),
                 custom("list", read_list).also({"trials"}),
                 key("jobs", &S::jobs, between(1, 4096), "").also({"parallel"}),
                 key("threads", &S::threads, between(0, 4096), ""),
                 key("most_trials", &S::most_trials, between(1, 10'000), "").also({"max_trials"}),
                 key("time_limit", &S::time_limit, above(0), "").also({"timeout"}),
                 key("sbatch", &S::sbatch, anything().items(0, 64), "").also({"slurm", "submit"})};
    return made;
  }();
  return schema;
}

}  // namespace

SweepSettings parse_sweep(const std::string& text, const std::string& path) {
  const YamlNode root = parse_yaml(text, path);
  if (root.kind != Kind::map)
    fail_at(root.at, fmt::format("expected a map with config and grid, found {}", root.describe()));
  SweepSettings sweep;
  sweep.path = path;
  read_map(sweep_schema(), root, "", &sweep);
  if (sweep.grid.empty() && sweep.list.empty()) fail_at(root.at, "nothing is swept: expected grid or list");
  return sweep;
}

SweepSettings load_sweep(const std::string& path) { return parse_sweep(read_config_file(path), path); }

}  // namespace lockstep
