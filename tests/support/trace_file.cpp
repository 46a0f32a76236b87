#include "support/trace_file.h"

#include <fstream>

#include "core/error.h"

namespace lockstep::test {

constexpr double kRounding = 0.0006;  // times are printed with three digits

bool TracedEvent::holds(const TracedEvent& other) const {
  return begin - kRounding <= other.begin && other.end <= end + kRounding;
}

TraceFile::TraceFile(const std::filesystem::path& file) {
  std::ifstream in(file);
  const nlohmann::json trace = nlohmann::json::parse(in);
  about_ = trace.at("otherData");
  std::map<int, std::pair<size_t, std::string>> threads;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const auto rank = event.at("pid").get<size_t>();
    if (names_.size() <= rank) names_.resize(rank + 1), rows_.resize(rank + 1);
    if (event.at("name") == "process_name") names_[rank] = event.at("args").at("name");
    if (event.at("name") == "thread_name") {
      threads[event.at("tid")] = {rank, event.at("args").at("name")};
      rows_[rank][event.at("args").at("name")];
    }
    if (event.at("ph") != "X") continue;
    const auto& [owner, row] = threads.at(event.at("tid"));
    if (owner != rank) throw_error("a thread of two processes");
    const double begin = event.at("ts");
    rows_[rank][row].push_back(
        {event.at("name"), event.at("cat"), begin, begin + event.at("dur").get<double>(), event.at("args")});
  }
}

std::vector<TracedEvent> TraceFile::events(size_t rank, const std::string& row, const std::string& category) const {
  std::vector<TracedEvent> found;
  for (const TracedEvent& event : rows_.at(rank).at(row))
    if (category.empty() || event.category == category) found.push_back(event);
  return found;
}

size_t TraceFile::count(size_t rank, const std::string& row, const std::string& category, const std::string& name,
                        const TracedEvent& outer) const {
  size_t found = 0;
  for (const TracedEvent& event : events(rank, row, category)) found += event.name == name && outer.holds(event);
  return found;
}

std::string TraceFile::tangle() const {
  for (const auto& rank : rows_) {
    for (const auto& [row, events] : rank) {
      std::vector<const TracedEvent*> open;
      for (const TracedEvent& event : events) {
        while (!open.empty() && open.back()->end <= event.begin + kRounding) open.pop_back();
        if (event.end < event.begin || event.begin < 0) return row + ": " + event.name + " has no time";
        if (!open.empty() && !open.back()->holds(event))
          return row + ": " + event.name + " ends outside of " + open.back()->name;
        open.push_back(&event);
      }
    }
  }
  return "";
}

}  // namespace lockstep::test
