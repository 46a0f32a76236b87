// The forms of the results: CSV, JSON, Markdown, and the report's section.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "sweep/results.h"

namespace lockstep {
namespace {

using nlohmann::json;

std::string csv_cell(const json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2)) text.insert(at, 1, '"');
  return "\"" + text + "\"";
}

std::string markdown_cell(const json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{:.5g}", value.get<double>());
  if (!value.is_string()) return value.dump();
  std::string text;
  for (const char c : value.get<std::string>()) {
    if (c == '|' || c == '\\' || c == '<' || c == '*' || c == '`') text += '\\';
    text += c == '\n' || c == '\r' ? ' ' : c;
  }
  return text;
}

// What tells trials apart at a glance; the files have all columns.
bool is_main_column(const std::string& name) {
  static const std::set<std::string> names{
      "trial",        "state",           "global_batch",  "samples_per_second", "strong_speedup", "strong_efficiency",
      "weak_speedup", "weak_efficiency", "communication", "train_loss",         "val_accuracy",   "val_loss"};
  return names.contains(name);
}

std::string console_cell(const json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string results_csv(const SweepResults& results) {
  std::string text;
  const auto line = [&](const auto& cells) {
    for (size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(cells[i]);
    text += "\r\n";
  };
  line(results.columns);
  for (const auto& row : results.rows) line(row);
  return text;
}

std::string results_json(const SweepResults& results) {
  json trials = json::array();
  for (const auto& row : results.rows) {
    json trial = json::object();
    for (size_t i = 0; i < row.size(); ++i) trial[results.columns[i]] = row[i];
    trials.push_back(std::move(trial));
  }
  return json{{"trials", std::move(trials)}, {"notes", results.notes}}.dump(2, ' ', false,
                                                                            json::error_handler_t::replace) +
         "\n";
}

std::string results_markdown(const SweepResults& results) {
  std::string text = "|", rule = "|";
  for (const std::string& column : results.columns) text += " " + column + " |", rule += "---|";
  text += "\n" + rule + "\n";
  for (const auto& row : results.rows) {
    text += "|";
    for (const json& value : row) text += " " + markdown_cell(value) + " |";
    text += "\n";
  }
  if (!results.notes.empty()) text += "\n";
  for (const std::string& note : results.notes) text += "* " + note + "\n";
  return text;
}

std::string results_console(const SweepResults& results) {
  std::vector<std::string> lines(results.rows.size() + 1);
  for (size_t column = 0; column < results.columns.size(); ++column) {
    if (!is_main_column(results.columns[column])) continue;
    std::vector<std::string> cells{results.columns[column]};
    for (const auto& row : results.rows) cells.push_back(console_cell(row[column]));
    size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, cell.size());
    for (size_t line = 0; line < cells.size(); ++line)
      lines[line] +=
          column == 0 ? fmt::format("{:<{}}", cells[line], width) : fmt::format("  {:>{}}", cells[line], width);
  }
  std::string text = fmt::format("{}\n", fmt::join(lines, "\n"));
  if (!results.notes.empty()) text += "\n";
  for (const std::string& note : results.notes) text += note + "\n";
  return text;
}

json results_section(const SweepResults& results) {
  return {{"columns", results.columns}, {"rows", results.rows}, {"failed", results.failed}, {"notes", results.notes}};
}

}  // namespace lockstep
