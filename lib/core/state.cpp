#include "core/state.h"

#include "core/error.h"

namespace lockstep {

template <class T>
const T& State::get(std::string_view name, const char* type) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw_error("saved state: '{}' is missing", name);
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) throw_error("saved state: '{}' is not {}", name, type);
  return *value;
}

bool State::flag(std::string_view name) const { return get<bool>(name, "true or false"); }
int64_t State::integer(std::string_view name) const { return get<int64_t>(name, "an integer"); }
double State::real(std::string_view name) const { return get<double>(name, "a real number"); }
const std::string& State::text(std::string_view name) const { return get<std::string>(name, "a text"); }

const std::vector<int64_t>& State::integers(std::string_view name) const {
  return get<std::vector<int64_t>>(name, "a list of integers");
}

const std::vector<double>& State::reals(std::string_view name) const {
  return get<std::vector<double>>(name, "a list of real numbers");
}

void State::add(const std::string& prefix, const State& part) {
  for (const auto& [name, value] : part.values_) set(prefix + "." + name, value);
}

State State::part(const std::string& prefix) const {
  const std::string start = prefix + ".";
  State result;
  for (auto entry = values_.lower_bound(start); entry != values_.end() && entry->first.starts_with(start); ++entry)
    result.set(entry->first.substr(start.size()), entry->second);
  return result;
}

}  // namespace lockstep
