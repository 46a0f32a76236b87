#include "core/fault.h"

#include <signal.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/error.h"

namespace lockstep {
namespace {

// The word up to `separator`, which is taken off `text`.
std::string_view take(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return word;
}

bool read(std::string_view word, int64_t& number) {
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
  return problem == std::errc() && end == word.data() + word.size() && number >= 0;
}

}  // namespace

Fault::Fault(int rank) {
  const char* variable = std::getenv("LOCKSTEP_FAULT");
  if (variable == nullptr) return;
  std::string_view rest = variable;
  int64_t wanted_rank = 0, seconds = 0;
  bool valid = read(take(rest, ','), wanted_rank);
  std::string_view place = take(rest, ','), action = rest;
  const std::string_view kind = take(place, ':');
  valid = valid && (kind == "preparation" ? place.empty() : kind == "step" && read(place, step_));
  action_ = take(action, ':');
  valid =
      valid && (action_ == "sleep" ? read(action, seconds)
                                   : action.empty() && (action_ == "throw" || action_ == "kill" || action_ == "stop"));
  if (!valid)
    throw_error("LOCKSTEP_FAULT: expected RANK,preparation|step:N,sleep:SECONDS|throw|kill|stop, found '{}'", variable);
  seconds_ = static_cast<double>(seconds);
  if (wanted_rank == rank) place_ = kind == "step" ? Place::step : Place::preparation;
}

void Fault::act() const {
  if (action_ == "sleep") std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
  if (action_ == "throw") throw_error("LOCKSTEP_FAULT asks for an error here");
  if (action_ == "kill") raise(SIGKILL);
  if (action_ == "stop") raise(SIGSTOP);
}

}  // namespace lockstep
