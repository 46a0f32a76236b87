#include "core/fault.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/whole_number.h"

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
  const auto found = whole_number<int64_t>(word);
  number = found.value_or(-1);
  return number >= 0;
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
  constexpr std::pair<std::string_view, Place> unnumbered[] = {{"start", Place::start},
                                                               {"preparation", Place::preparation}};
  constexpr std::pair<std::string_view, Place> numbered[] = {{"step", Place::step},
                                                             {"forward", Place::forward},
                                                             {"loader", Place::loader},
                                                             {"save", Place::save},
                                                             {"evaluation", Place::evaluation}};
  Place wanted = Place::none;
  for (const auto& [name, value] : unnumbered)
    if (kind == name && place.empty()) wanted = value;
  for (const auto& [name, value] : numbered)
    if (kind == name && read(place, number_)) wanted = value;
  action_ = take(action, ':');
  const std::string_view plain[] = {"throw", "memory", "kill", "stop", "term", "usr1"};
  const bool known = std::ranges::find(plain, action_) != std::end(plain);
  valid = valid && wanted != Place::none && (action_ == "sleep" ? read(action, seconds) : known && action.empty());
  if (!valid)
    throw_error(
        "LOCKSTEP_FAULT: expected RANK,start|preparation|step:N|forward:N|loader:N|save:N|evaluation:N,"
        "sleep:SECONDS|throw|memory|kill|stop|term|usr1, found '{}'",
        variable);
  seconds_ = static_cast<double>(seconds);
  if (wanted_rank == rank) place_ = wanted;
}

void Fault::act() const {
  if (action_ == "sleep") std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
  if (action_ == "memory") throw std::bad_alloc();
  if (action_ == "throw") throw_error("LOCKSTEP_FAULT asks for an error here");
  if (action_ == "kill") raise(SIGKILL);
  if (action_ == "stop") raise(SIGSTOP);
  if (action_ == "term") kill(getpid(), SIGTERM);
  if (action_ == "usr1") kill(getpid(), SIGUSR1);
}

}  // namespace lockstep
