// What must outlive a process, as named plain values: components hand them to a checkpoint and take them back. Names
// are dotted paths ("schedule.best"); whoever puts several components together gives each a prefix.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep {

class State {
 public:
  // Reals keep their bits, NaN and infinities too.
  using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
  using Values = std::map<std::string, Value, std::less<>>;

  void set(std::string name, Value value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  bool contains(std::string_view name) const { return values_.find(name) != values_.end(); }

  // Error, naming the value: it is missing, or of another type.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;

  void add(const std::string& prefix, const State& part);  // its values, as "prefix.name"
  State part(const std::string& prefix) const;             // the values named so, without the prefix; may be none

  const Values& values() const { return values_; }

 private:
  template <class T>
  const T& get(std::string_view name, const char* type) const;
  Values values_;
};

}  // namespace lockstep
