#include "train/checkpoint/init_from.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_names.h"
#include "train/config_path.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

// nullopt: left out.
std::optional<std::string> renamed(const std::string& name, const InitFromConfig& config) {
  for (const auto& [from, to] : config.rename) {
    const bool any_end = from.ends_with('*');
    const std::string start = from.substr(0, from.size() - (any_end ? 1 : 0));
    if (any_end ? !name.starts_with(start) : name != from) continue;
    if (to.empty()) return std::nullopt;
    return any_end ? to.substr(0, to.size() - 1) + name.substr(start.size()) : to;
  }
  return name;
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// "a, b, c and 12 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i > 0 ? ", " : "") + printable(names[i]);
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

// The tensors of the file under the names they have here.
class NamedTensors {
 public:
  NamedTensors(const TensorFile& file, const InitFromConfig& config, InitReport& report) : file_(file) {
    for (const auto& [name, entry] : file.entries()) {
      const auto ours = renamed(name, config);
      if (!ours) {
        report.left_out.push_back(name);
        continue;
      }
      const auto [earlier, is_new] = names_.emplace(*ours, name);
      if (!is_new)
        throw_error("'{}' and '{}' would both be '{}' here", printable(earlier->second), printable(name),
                    printable(*ours));
    }
  }

  // The values for `name`; empty: none, which is reported as missing.
  std::optional<std::vector<float>> take(const std::string& name, const Shape& shape, InitReport& report) {
    const auto found = names_.find(name);
    if (found == names_.end()) {
      report.missing.push_back(name);
      return std::nullopt;
    }
    const TensorFile::Entry& entry = *file_.find(found->second);
    if (!std::ranges::equal(entry.shape, shape.dims()))
      throw_error("'{}': the model's shape is {}, found {}", printable(found->second), shape.str(),
                  shape_text(entry.shape));
    std::vector<float> values = file_.floats(found->second);
    names_.erase(found);
    report.values += static_cast<int64_t>(values.size());
    return values;
  }

  std::vector<std::string> rest() const {
    std::vector<std::string> names;
    for (const auto& [ours, name] : names_) names.push_back(name);
    std::ranges::sort(names);
    return names;
  }

 private:
  const TensorFile& file_;
  std::map<std::string, std::string> names_;  // ours -> the file's
};

void check_strict(const InitReport& report) {
  std::vector<std::string> missing = report.missing;
  std::erase_if(missing, is_counter);
  if (missing.empty() && report.unused.empty()) return;
  std::string text;
  if (!missing.empty()) text += fmt::format("; it lacks {}", some_of(missing));
  if (!report.unused.empty()) text += fmt::format("; it has {}, which the model has not", some_of(report.unused));
  throw_error("does not fit the model{}: map names with model.init_from.rename, or set strict: false", text);
}

TensorFile read_weights(const std::string& path) {
  if (path.ends_with(kTensorSuffix)) return TensorFile::read(path);
  return read_checkpoint(path).file("model");
}

std::string noun(size_t count, const char* one) { return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s"); }

}  // namespace

std::string InitReport::text() const {
  std::string text = fmt::format("weights from {}: {} and {} loaded ({} values)", path,
                                 noun(static_cast<size_t>(parameters), "parameter"),
                                 noun(static_cast<size_t>(buffers), "buffer"), values);
  if (!missing.empty()) text += fmt::format("\n  not in the file, left as initialised: {}", some_of(missing));
  if (!unused.empty()) text += fmt::format("\n  not in the model: {}", some_of(unused));
  if (!left_out.empty()) text += fmt::format("\n  left out: {}", some_of(left_out));
  return text;
}

InitReport init_from(const TensorFile& file, const InitFromConfig& config, ParameterStore& store) {
  InitReport report{.path = file.path()};
  try {
    NamedTensors tensors(file, config, report);
    std::vector<std::optional<std::vector<float>>> parameters, buffers;
    for (const Parameter& p : store.parameters()) parameters.push_back(tensors.take(p.name, p.shape, report));
    for (const ModelBuffer& b : store.buffers()) buffers.push_back(tensors.take(b.name, b.shape, report));
    report.unused = tensors.rest();
    if (config.strict) check_strict(report);
    for (size_t id = 0; id < parameters.size(); ++id) {
      if (!parameters[id]) continue;
      store.set_canonical(static_cast<ParameterId>(id), *parameters[id]);
      ++report.parameters;
    }
    for (size_t id = 0; id < buffers.size(); ++id) {
      if (!buffers[id]) continue;
      store.set_buffer(static_cast<BufferId>(id), *buffers[id]);
      ++report.buffers;
    }
  } catch (const Error& error) {
    throw_error("{}: model.init_from: {}: {}", config.where, file.path(), error.what());
  }
  return report;
}

InitReport init_from(const Config& config, ParameterStore& store) {
  std::optional<TensorFile> file;
  try {
    file.emplace(read_weights(resolve_path(config, config.init_from.file)));
  } catch (const Error& error) {
    throw_error("{}: model.init_from: {}", config.init_from.where, error.what());
  }
  return init_from(*file, config.init_from, store);
}

}  // namespace lockstep
