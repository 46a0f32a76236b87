#include "train/slurm_job.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/run_program.h"
#include "core/whole_number.h"

namespace lockstep {
namespace {

constexpr double answer_limit = 20;  // seconds; a busy controller takes its time

bool read_whole(std::string_view text, int64_t& number) {
  const auto found = whole_number<int64_t>(text);
  number = found.value_or(-1);
  return number >= 0;
}

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  text.erase(std::ranges::find_if_not(text.rbegin(), text.rend(), blank).base(), text.end());
  text.erase(text.begin(), std::ranges::find_if_not(text, blank));
  return text;
}

// What a Slurm command answers. Error: with what it said instead.
std::string ask(const std::vector<std::string>& command) {
  const ProgramAnswer answer = run_program(command, answer_limit);
  const std::string text = trimmed(answer.output);
  if (answer.exit_code != 0)
    throw_error("{} {} ended with code {}: {}", command[0], command[1], answer.exit_code, text);
  return text;
}

}  // namespace

std::optional<double> parse_slurm_time_left(const std::string& text) {
  if (text == "UNLIMITED" || text == "NOT_SET") return std::nullopt;
  std::string_view rest = text;
  int64_t days = 0, number = 0, seconds = 0;
  int parts = 0;
  bool valid = true;
  if (const size_t dash = rest.find('-'); dash != std::string_view::npos) {
    valid = read_whole(rest.substr(0, dash), days) && days < 100000;
    rest.remove_prefix(dash + 1);
  }
  for (bool more = true; more && valid; ++parts) {
    const size_t colon = rest.find(':');
    more = colon != std::string_view::npos;
    valid = parts < 3 && read_whole(rest.substr(0, colon), number) && number < 1000000;
    seconds = seconds * 60 + number;
    if (more) rest.remove_prefix(colon + 1);
  }
  if (!valid || parts < 2) throw_error("Slurm's time left '{}' is not [[days-]hours:]minutes:seconds", text);
  return static_cast<double>(days * 86400 + seconds);
}

std::optional<double> slurm_seconds_left() {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr) return std::nullopt;
  if (const char* end = std::getenv("SLURM_JOB_END_TIME")) {
    int64_t at = 0;
    if (!read_whole(end, at)) throw_error("SLURM_JOB_END_TIME is '{}', not a time in seconds", end);
    const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
    return static_cast<double>(at) - now.count();
  }
  return parse_slurm_time_left(ask({"squeue", "--noheader", "--format=%L", std::string("--jobs=") + job}));
}

bool may_requeue(const std::string& reason) { return !reason.starts_with("SIGTERM"); }

void requeue_job() {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr) throw_error("run.requeue: this is no Slurm job (SLURM_JOB_ID is not set)");
  ask({"scontrol", "requeue", job});
}

}  // namespace lockstep
