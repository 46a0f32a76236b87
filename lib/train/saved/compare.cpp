#include "train/saved/compare.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "core/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_names.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

using Kind = TensorDifference::Kind;

struct Saved {
  std::string path;
  std::map<std::string, TensorFile> files;  // "" for a single one
  bool is_file() const { return files.size() == 1 && files.contains(""); }
};

Saved read_saved(const std::string& path) {
  Saved saved;
  if (path.ends_with(kTensorSuffix)) {
    saved.path = path;
    saved.files.emplace("", TensorFile::read(path));
  } else {
    Checkpoint checkpoint = read_checkpoint(path);
    saved.path = checkpoint.path;
    saved.files = std::move(checkpoint.tensors);
  }
  return saved;
}

void keep_model_alone(Saved& saved) {
  const auto model = saved.files.find("model");
  if (model == saved.files.end()) throw_error("{}: holds no model{}", saved.path, kTensorSuffix);
  TensorFile file = std::move(model->second);
  saved.files.clear();
  saved.files.emplace("", std::move(file));
}

std::string shape_text(const TensorFile::Entry& entry) { return fmt::format("[{}]", fmt::join(entry.shape, ", ")); }

void compare_files(const std::string& file, const TensorFile* a, const TensorFile* b, const Tolerance& tolerance,
                   std::vector<TensorDifference>& found) {
  std::set<std::string> names;
  for (const TensorFile* side : {a, b}) {
    if (side == nullptr) continue;
    for (const auto& [name, entry] : side->entries()) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto* in_a = a == nullptr ? nullptr : a->find(name);
    const auto* in_b = b == nullptr ? nullptr : b->find(name);
    TensorDifference difference;
    if (in_a != nullptr && in_b != nullptr) {
      difference = compare_tensor(name, *a, *b, tolerance);
    } else {
      const auto& entry = in_a != nullptr ? *in_a : *in_b;
      difference.kind = in_a != nullptr ? Kind::only_first : Kind::only_second;
      difference.shapes = shape_text(entry);
    }
    difference.name = (file.empty() ? "" : file + ": ") + printable(name);
    found.push_back(std::move(difference));
  }
}

std::string line(const TensorDifference& d, size_t width) {
  switch (d.kind) {
    case Kind::equal: return fmt::format("{:<{}}  equal", d.name, width);
    case Kind::only_first: return fmt::format("{:<{}}  {} in the first only", d.name, width, d.shapes);
    case Kind::only_second: return fmt::format("{:<{}}  {} in the second only", d.name, width, d.shapes);
    case Kind::shapes: return fmt::format("{:<{}}  shapes {}", d.name, width, d.shapes);
    case Kind::different: break;
  }
  return fmt::format("{:<{}}  largest difference {:.6g}, relative {:.6g}, {} of {} values", d.name, width, d.absolute,
                     d.relative, d.beyond, d.values);
}

}  // namespace

TensorDifference compare_tensor(const std::string& name, const TensorFile& a, const TensorFile& b,
                                const Tolerance& tolerance) {
  TensorDifference difference{.name = name, .shapes = {}};
  const auto &in_a = *a.find(name), &in_b = *b.find(name);
  if (in_a.shape != in_b.shape) {
    difference.kind = Kind::shapes;
    difference.shapes = shape_text(in_a) + " and " + shape_text(in_b);
    return difference;
  }
  const std::vector<double> first = a.doubles(name), second = b.doubles(name);
  difference.values = static_cast<int64_t>(first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    const double x = first[i], y = second[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    // A NaN or an infinity on one side is as far away as can be.
    const double apart = std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : HUGE_VAL;
    const double relative = std::isinf(apart) ? HUGE_VAL : apart / std::max(std::abs(x), std::abs(y));
    difference.absolute = std::max(difference.absolute, apart);
    difference.relative = std::max(difference.relative, relative);
    if (!(apart <= tolerance.absolute + tolerance.relative * std::abs(y))) ++difference.beyond;
  }
  if (difference.beyond > 0) difference.kind = Kind::different;
  return difference;
}

bool Comparison::equal() const {
  return std::ranges::all_of(tensors, [](const TensorDifference& d) { return d.kind == Kind::equal; });
}

Comparison compare_saved(const std::string& a, const std::string& b, const Tolerance& tolerance) {
  Saved first = read_saved(a), second = read_saved(b);
  if (first.is_file() && !second.is_file()) keep_model_alone(second);
  if (second.is_file() && !first.is_file()) keep_model_alone(first);
  std::set<std::string> files;
  for (const Saved* side : {&first, &second}) {
    for (const auto& [name, file] : side->files) files.insert(name);
  }
  Comparison comparison{.first = first.path, .second = second.path, .tensors = {}};
  for (const std::string& file : files) {
    const auto in_first = first.files.find(file), in_second = second.files.find(file);
    compare_files(file, in_first == first.files.end() ? nullptr : &in_first->second,
                  in_second == second.files.end() ? nullptr : &in_second->second, tolerance, comparison.tensors);
  }
  return comparison;
}

std::string comparison_text(const Comparison& comparison, bool all) {
  std::vector<const TensorDifference*> told;
  for (const TensorDifference& tensor : comparison.tensors) {
    if (all || tensor.kind != Kind::equal) told.push_back(&tensor);
  }
  std::ranges::stable_sort(told, [](const TensorDifference* a, const TensorDifference* b) {
    const bool structural_a = a->kind > Kind::different, structural_b = b->kind > Kind::different;
    return structural_a != structural_b ? structural_a : a->absolute > b->absolute;
  });
  size_t width = 0;
  for (const TensorDifference* tensor : told) width = std::max(width, tensor->name.size());
  std::string text = fmt::format("A: {}\nB: {}\n", comparison.first, comparison.second);
  for (const TensorDifference* tensor : told) text += line(*tensor, width) + "\n";
  const auto differing =
      std::ranges::count_if(comparison.tensors, [](const TensorDifference& d) { return d.kind != Kind::equal; });
  double absolute = 0, relative = 0;
  for (const TensorDifference& tensor : comparison.tensors) {
    absolute = std::max(absolute, tensor.absolute);
    relative = std::max(relative, tensor.relative);
  }
  text += differing == 0 ? fmt::format("{} tensors, all equal", comparison.tensors.size())
                         : fmt::format("{} of {} tensors differ", differing, comparison.tensors.size());
  if (absolute > 0) text += fmt::format("; largest difference {:.6g}, relative {:.6g}", absolute, relative);
  return text + "\n";
}

}  // namespace lockstep
