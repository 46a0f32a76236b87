// A run's trace.json, read back as people look at it: ranks, their rows, what is in a row and what lies in what.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::test {

struct TracedEvent {
  std::string name, category;
  double begin = 0, end = 0;  // microseconds
  nlohmann::json values;
  bool holds(const TracedEvent& other) const;
};

class TraceFile {
 public:
  explicit TraceFile(const std::filesystem::path& file);  // throws for what is no JSON

  std::vector<std::string> ranks() const { return names_; }  // "rank 0 on HOST", by rank
  const nlohmann::json& about() const { return about_; }
  // In the order of the file; category empty: all.
  std::vector<TracedEvent> events(size_t rank, const std::string& row, const std::string& category = "") const;
  // Of events with this category and name, those within `outer`.
  size_t count(size_t rank, const std::string& row, const std::string& category, const std::string& name,
               const TracedEvent& outer) const;
  // Empty where each two events of every row lie apart or one in the other, and all have a length; else which don't.
  std::string tangle() const;

 private:
  std::vector<std::string> names_;
  std::vector<std::map<std::string, std::vector<TracedEvent>>> rows_;
  nlohmann::json about_;
};

}  // namespace lockstep::test
