#include "sweep/trials.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "train/config_batch.h"
#include "train/config_path.h"

namespace lockstep {
namespace {

using Parameters = std::vector<Assignment>;

int64_t count_trials(const SweepSettings& sweep) {
  int64_t count = sweep.list.empty() ? 1 : std::ssize(sweep.list);
  for (const Parameters& axis : sweep.grid) {
    if (__builtin_mul_overflow(count, std::ssize(axis), &count)) return INT64_MAX;
  }
  return count;
}

// A trial's values: those of its list entry, then one of each key of the grid.
std::vector<Parameters> combinations(const SweepSettings& sweep) {
  std::vector<Parameters> made = sweep.list.empty() ? std::vector<Parameters>(1) : sweep.list;
  for (const Parameters& axis : sweep.grid) {
    std::vector<Parameters> longer;
    for (const Parameters& start : made) {
      for (const Assignment& value : axis) {
        longer.push_back(start);
        longer.back().push_back(value);
      }
    }
    made = std::move(longer);
  }
  return made;
}

void check_keys(const Parameters& set, const Parameters& parameters) {
  std::set<std::string> seen;
  for (const Parameters* list : {&set, &parameters}) {
    for (const Assignment& each : *list)
      if (!seen.insert(each.key).second) fail_at(each.at, fmt::format("{} is set twice for one trial", each.key));
  }
}

// "lr" for optimizer.lr, unless another key of the sweep ends alike.
std::string short_name(const std::string& name, const std::map<std::string, int>& endings) {
  const std::string ending = name.substr(name.rfind('.') + 1);
  return endings.at(ending) > 1 ? name : ending;
}

std::map<std::string, int> count_endings(const SweepSettings& sweep) {
  std::set<std::string> names;
  for (const auto* lists : {&sweep.grid, &sweep.list})
    for (const Parameters& list : *lists)
      for (const Assignment& each : list) names.insert(each.name);
  std::map<std::string, int> endings;
  for (const std::string& name : names) ++endings[name.substr(name.rfind('.') + 1)];
  return endings;
}

// Reads the trial's config as `lockstep train` will.
Config config_of(const Trial& trial) {
  try {
    return load_config(trial.config, trial.overrides);
  } catch (const Error& error) {
    throw_error("{}: trial {}: {}", trial.parameters.front().at.str(), trial.name, error.what());
  }
}

Trial named_trial(const SweepSettings& sweep, Parameters parameters, const std::map<std::string, int>& endings) {
  check_keys(sweep.set, parameters);
  Trial trial;
  const std::string root = project_root(sweep.path);
  const auto below_root = [&](const std::string& path) {
    return (std::filesystem::path(root) / path).lexically_normal();
  };
  std::string text;
  for (const Assignment& each : parameters)
    text += (text.empty() ? "" : ",") + short_name(each.name, endings) + "=" + each.shown;
  trial.name = folder_name(text);
  trial.dir = (below_root(sweep.dir) / trial.name).string();
  trial.config = below_root(sweep.config).string();
  for (const Parameters* list : {&sweep.set, &std::as_const(parameters)})
    for (const Assignment& each : *list) trial.overrides.push_back(each.key + "=" + each.value);
  trial.parameters = std::move(parameters);
  trial.world_size = config_of(trial).distributed.world_size.value_or(1);
  return trial;
}

void complete(Trial& trial, int64_t threads) {
  const int64_t own = config_of(trial).device.threads;
  trial.threads = own > 0 ? own : threads;
  trial.overrides.push_back(fmt::format("device.threads={}", trial.threads));
  trial.overrides.push_back("run.dir=" + nlohmann::json(trial.dir).dump());
  const Config config = config_of(trial);
  trial.resolved = to_yaml(config);
  try {
    const BatchArithmetic batch = resolve_batch(config.train, trial.world_size);
    trial.batch_size = batch.batch_size;
    trial.accumulate = batch.accumulate;
    trial.global_batch = batch.global_batch_size;
  } catch (const Error& error) {
    throw_error("{}: trial {}: {}", trial.parameters.front().at.str(), trial.name, error.what());
  }
}

}  // namespace

std::string folder_name(const std::string& text) {
  constexpr size_t kLongest = 120;
  std::string name;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                          std::string_view("._=,+-").find(c) != std::string_view::npos;
    name += is_plain ? c : '_';
  }
  if (name == text && name.size() <= kLongest && !name.starts_with('.')) return name;
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  if (name.starts_with('.')) name.front() = '_';
  return fmt::format("{}-{:08x}", name.substr(0, kLongest - 9), static_cast<uint32_t>(digest ^ digest >> 32));
}

std::vector<Trial> make_trials(const SweepSettings& sweep, int64_t cores) {
  if (const int64_t count = count_trials(sweep); count > sweep.most_trials)
    throw_error("{}: {} trials are more than most_trials: {}", sweep.path, count, sweep.most_trials);
  const std::map<std::string, int> endings = count_endings(sweep);
  std::vector<Trial> trials;
  std::set<std::string> names;
  int64_t widest = 1;
  for (Parameters& parameters : combinations(sweep)) {
    Trial& trial = trials.emplace_back(named_trial(sweep, std::move(parameters), endings));
    if (!names.insert(trial.name).second)
      fail_at(trial.parameters.front().at, fmt::format("trial {} is there twice", trial.name));
    widest = std::max(widest, trial.world_size);
  }
  const int64_t threads = sweep.threads > 0 ? sweep.threads : std::max<int64_t>(cores / widest, 1);
  for (Trial& trial : trials) complete(trial, threads);
  return trials;
}

}  // namespace lockstep
