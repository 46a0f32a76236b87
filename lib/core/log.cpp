#include "core/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/terminal.h"

namespace lockstep::log {
namespace {

std::shared_ptr<spdlog::logger> make(const std::string& name, spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
  logger->set_pattern("%v");
  logger->flush_on(spdlog::level::trace);
  return logger;
}

struct State {
  int rank = 0;
  int world_size = 1;
  Options options;
  bool live = false, colored = false;
  std::shared_ptr<spdlog::logger> out = make("out", std::make_shared<spdlog::sinks::stdout_sink_mt>());
  std::shared_ptr<spdlog::logger> err = make("err", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  std::shared_ptr<spdlog::logger> copy;  // null: none yet
  std::vector<std::string> early;        // lines for it
  std::string status;
  std::mutex mutex;  // of the status line
};

State& state() {
  static State instance;
  return instance;
}

std::string prefixed(std::string_view line) {
  const State& s = state();
  return s.world_size > 1 ? fmt::format("[rank {}] {}", s.rank, line) : std::string(line);
}

constexpr size_t kMostEarly = 256;

void keep(std::string_view line) {
  State& s = state();
  if (s.copy) {
    s.copy->info("{}", line);
  } else if (s.early.size() < kMostEarly) {
    s.early.emplace_back(line);
  }
}

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// The line goes above the status line.
void print(spdlog::logger& logger, std::string_view line) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.status.empty()) put("\r\033[K");
  logger.info("{}", line);
  if (!s.status.empty()) put(s.status);
}

}  // namespace

void setup(int rank, int world_size, const Options& options) {
  State& s = state();
  s.rank = rank;
  s.world_size = world_size;
  s.options = options;
  s.live = rank == 0 && !options.quiet && is_terminal(1);
  s.colored = options.color == Color::always ||
              (options.color == Color::automatic && std::getenv("NO_COLOR") == nullptr && is_terminal(2));
}

void copy_to(const std::string& path, bool fresh) {
  try {
    state().copy = make("copy", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, fresh));
  } catch (const spdlog::spdlog_ex& error) {
    throw_error("{}: cannot be written: {}", path, error.what());
  }
  for (const std::string& line : state().early) state().copy->info("{}", line);
  state().early.clear();
}

void write_info(std::string_view line) {
  State& s = state();
  keep(line);
  if (s.options.quiet) return;
  if (s.options.all_ranks) return print(*s.out, prefixed(line));
  if (s.rank == 0) print(*s.out, line);
}

void write_detail(std::string_view line) { state().live ? keep(line) : write_info(line); }

void write_warning(std::string_view line) {
  State& s = state();
  keep(prefixed(fmt::format("warning: {}", line)));
  const char* word = s.colored ? "\033[33mwarning:\033[0m" : "warning:";
  print(*s.err, prefixed(fmt::format("{} {}", word, line)));
}

void write_any(std::string_view line) { print(*state().out, prefixed(line)); }

bool live() { return state().live; }

void status(std::string_view line) {
  State& s = state();
  if (!s.live) return;
  const std::lock_guard lock(s.mutex);
  s.status = line.substr(0, static_cast<size_t>(terminal_width(1) - 1));
  put("\r\033[K" + s.status);
}

}  // namespace lockstep::log
