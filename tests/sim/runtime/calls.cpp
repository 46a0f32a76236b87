#include "sim/runtime/calls.h"

#include <mutex>
#include <set>

#include "sim/runtime/control.h"

namespace lockstep::sim {
namespace {

struct Calls {
  std::mutex mutex;
  std::map<std::string, int> counts;
  int all = 0;
  std::string failing;
  int failing_call = -1, failing_code = 0;
  std::string ignored;
  int ignored_call = -1;
  std::string misuse;
  bool silent = false;
  std::set<int> lost_epilogues;
};

Calls& state() {
  static Calls calls;
  return calls;
}

}  // namespace

bool call_fails(const char* function) {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  const int of_function = calls.counts[function]++, of_all = calls.all++;
  if (calls.failing_call < 0) return false;
  if (calls.failing.empty()) return of_all == calls.failing_call;
  return calls.failing == function && of_function == calls.failing_call;
}

bool is_ignored(const char* function) {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  return calls.ignored == function && calls.counts[function] == calls.ignored_call + 1;
}

void misuse(const char* function, const std::string& what) {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  calls.misuse = std::string(function) + ": " + what;
}

void forget_calls() {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  calls.counts.clear();
  calls.all = 0;
  calls.failing_call = -1;
  calls.ignored_call = -1;
  calls.ignored.clear();
  calls.misuse.clear();
  calls.silent = false;
  calls.lost_epilogues.clear();
}

bool is_silent() { return state().silent; }
void go_silent() { state().silent = true; }

int failing_code() { return state().failing_code; }

void fail_call(const std::string& function, int nth, int code) {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  calls.failing = function;
  calls.failing_call = nth;
  calls.failing_code = code;
}

void ignore_call(const std::string& function, int nth) {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  calls.ignored = function;
  calls.ignored_call = nth;
}

void lose_epilogue(int epilogue) {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  calls.lost_epilogues.insert(epilogue);
}

bool has_epilogue(int epilogue) {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  return !calls.lost_epilogues.contains(epilogue);
}

std::map<std::string, int> calls() {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  return calls.counts;
}

std::string last_misuse() {
  Calls& calls = state();
  const std::scoped_lock lock(calls.mutex);
  return calls.misuse;
}

}  // namespace lockstep::sim
