#include "optim/parameter_groups.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

constexpr size_t kSliceAlignment = 16;  // floats: slices of the store start on 64-byte boundaries

bool is_bias(const Parameter& parameter) {
  return parameter.shape.rank() <= 1 && (parameter.name == "bias" || parameter.name.ends_with(".bias"));
}

bool glob_matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {  // let the last star take one more character
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

namespace {

bool pattern_matches(const std::string& pattern, const Parameter& parameter, bool norm) {
  if (pattern == "norm") return norm;
  return pattern == "bias" ? is_bias(parameter) : glob_matches(pattern, parameter.name);
}

struct Draft {  // two groups in the making: the usual one and, apart, norms and biases treated otherwise
  ParameterGroup usual, apart;
  std::vector<ParameterId> ids, apart_ids;
};

class Assignment {
 public:
  Assignment(const ParameterStore& store, const std::vector<bool>& is_norm, const OptimizerSettings& settings)
      : store_(store), is_norm_(is_norm), settings_(settings) {}

  std::vector<ParameterGroup> run() {
    const size_t rest = settings_.groups.size();
    std::vector<Draft> drafts(rest + 1);
    for (size_t i = 0; i <= rest; ++i) start(i, drafts[i]);
    std::vector<bool> pattern_hit(pattern_count()), group_hit(rest);
    for (const ParameterId id : store_.arena_order()) {
      const size_t group = match(id, pattern_hit);
      if (group < rest) group_hit[group] = true;
      if (!parameter(id).trainable) continue;
      Draft& draft = drafts[group];
      const bool differs =
          draft.apart.weight_decay != draft.usual.weight_decay || draft.apart.adapt != draft.usual.adapt;
      const bool apart = differs && (norm(id) || is_bias(parameter(id)));
      (apart ? draft.apart_ids : draft.ids).push_back(id);
    }
    check_all_used(pattern_hit, group_hit);
    std::vector<ParameterGroup> groups;
    for (Draft& draft : drafts) {
      finish(draft.usual, draft.ids, groups);
      finish(draft.apart, draft.apart_ids, groups);
    }
    return groups;
  }

 private:
  const Parameter& parameter(ParameterId id) const { return store_.parameters()[static_cast<size_t>(id)]; }
  bool norm(ParameterId id) const { return !is_norm_.empty() && is_norm_[static_cast<size_t>(id)]; }

  size_t pattern_count() const {
    size_t count = 0;
    for (const ParameterGroupRule& rule : settings_.groups) count += rule.match.size();
    return count;
  }

  void start(size_t index, Draft& draft) const {
    const bool own = index < settings_.groups.size();
    const ParameterGroupRule rule = own ? settings_.groups[index] : ParameterGroupRule{};
    draft.usual.name = own ? fmt::format("group {}", index + 1) : settings_.groups.empty() ? "all" : "the rest";
    draft.usual.lr = rule.lr.value_or(settings_.lr.value());
    draft.usual.weight_decay = rule.weight_decay.value_or(settings_.weight_decay.value());
    draft.apart = draft.usual;
    draft.apart.name += " (norm and bias)";
    if (!settings_.decay_norm_and_bias && !rule.weight_decay) draft.apart.weight_decay = 0;
    draft.apart.adapt = !adapts_by_parameter(settings_) || settings_.adapt_norm_and_bias;
  }

  // The first group with a matching pattern; every pattern is tried, to know which ones match nothing.
  size_t match(ParameterId id, std::vector<bool>& pattern_hit) const {
    size_t found = settings_.groups.size(), index = 0;
    for (size_t group = 0; group < settings_.groups.size(); ++group)
      for (const std::string& pattern : settings_.groups[group].match) {
        if (pattern_matches(pattern, parameter(id), norm(id)))
          pattern_hit[index] = true, found = std::min(found, group);
        ++index;
      }
    return found;
  }

  void check_all_used(const std::vector<bool>& pattern_hit, const std::vector<bool>& group_hit) const {
    size_t index = 0;
    for (size_t group = 0; group < settings_.groups.size(); ++group) {
      const std::vector<std::string>& patterns = settings_.groups[group].match;
      if (patterns.empty()) throw_error("optimizer.groups[{}].match: expected at least one pattern, found none", group);
      for (size_t i = 0; i < patterns.size(); ++i)
        if (!pattern_hit[index++])
          throw_error("optimizer.groups[{}].match[{}]: no parameter matches '{}' (first parameter: {})", group, i,
                      patterns[i], store_.parameters().empty() ? "none" : store_.parameters()[0].name);
      if (!group_hit[group])
        throw_error("optimizer.groups[{}]: every parameter it matches belongs to an earlier group", group);
    }
  }

  void finish(ParameterGroup& group, const std::vector<ParameterId>& ids, std::vector<ParameterGroup>& out) const {
    std::vector<ParameterRange> slices;
    for (const ParameterId id : ids)
      if (parameter(id).count > 0) slices.push_back({parameter(id).offset, parameter(id).count});
    if (slices.empty()) return;
    std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    for (const ParameterRange& slice : slices) {
      if (!group.ranges.empty() && !adapts_by_parameter(settings_)) {
        ParameterRange& last = group.ranges.back();
        const size_t end = last.offset + last.count;
        if (slice.offset == (end + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment) {
          last.count = slice.offset + slice.count - last.offset;
          continue;
        }
      }
      group.ranges.push_back(slice);
    }
    out.push_back(std::move(group));
  }

  const ParameterStore& store_;
  const std::vector<bool>& is_norm_;
  const OptimizerSettings& settings_;
};

}  // namespace

std::vector<ParameterGroup> make_parameter_groups(const ParameterStore& store, const std::vector<bool>& is_norm,
                                                  const OptimizerSettings& settings) {
  if (!store.laid_out()) throw_error("parameter groups: the parameters are not laid out yet");
  if (!is_norm.empty() && is_norm.size() != store.parameters().size())
    throw_error("parameter groups: expected {} norm flags, found {}", store.parameters().size(), is_norm.size());
  return Assignment(store, is_norm, settings).run();
}

bool is_frozen(const OptimizerSettings& settings, const Parameter& parameter, bool norm) {
  for (const ParameterGroupRule& rule : settings.groups)
    for (const std::string& pattern : rule.match)
      if (pattern_matches(pattern, parameter, norm)) return !rule.trainable;
  return false;
}

std::vector<ParameterRange> parameter_slices(const ParameterStore& store) {
  std::vector<ParameterRange> slices;
  for (const ParameterId id : store.arena_order()) {
    const Parameter& p = store.parameters()[static_cast<size_t>(id)];
    if (p.trainable && p.count > 0) slices.push_back({p.offset, p.count});
  }
  return slices;
}

}  // namespace lockstep
