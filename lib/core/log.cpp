#include "core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace lockstep::log {
namespace {

struct State {
  int rank = 0;
  int world_size = 1;
  bool quiet = false;
  std::shared_ptr<spdlog::logger> out = make("out", std::make_shared<spdlog::sinks::stdout_sink_mt>());
  std::shared_ptr<spdlog::logger> err = make("err", std::make_shared<spdlog::sinks::stderr_sink_mt>());

  static std::shared_ptr<spdlog::logger> make(const std::string& name, spdlog::sink_ptr sink) {
    auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
    logger->set_pattern("%v");
    logger->flush_on(spdlog::level::trace);
    return logger;
  }
};

State& state() {
  static State instance;
  return instance;
}

std::string prefixed(std::string_view line) {
  const State& s = state();
  return s.world_size > 1 ? fmt::format("[rank {}] {}", s.rank, line) : std::string(line);
}

}  // namespace

void setup(int rank, int world_size, bool quiet) {
  state().rank = rank;
  state().world_size = world_size;
  state().quiet = quiet;
}

void write_info(std::string_view line) {
  if (state().rank == 0 && !state().quiet) state().out->info("{}", line);
}

void write_warning(std::string_view line) { state().err->warn("{}", prefixed(fmt::format("warning: {}", line))); }

void write_any(std::string_view line) { state().out->info("{}", prefixed(line)); }

}  // namespace lockstep::log
