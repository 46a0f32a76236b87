#include "comm/shm/rendezvous.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Word = std::atomic_ref<uint64_t>;
static_assert(Word::is_always_lock_free, "only lock-free atomics work between processes");

constexpr int spins_before_yield = 4000;                       // a few tens of microseconds
constexpr auto yields_before_sleep = std::chrono::seconds(1);  // then a rank is waiting for a file, not for arithmetic

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Rendezvous::Rendezvous(std::vector<PhaseLine*> lines, AbortNotice* notice, int rank, WaitPolicy policy)
    : lines_(std::move(lines)),
      notice_(notice),
      rank_(rank),
      policy_(policy),
      spins_(policy.yield_at_once ? 1 : spins_before_yield) {}

void Rendezvous::begin(Collective kind, uint64_t count, uint64_t where) {
  ++sequence_;
  current_ = Fingerprint::make(kind, count, where, policy_.activity != nullptr ? policy_.activity->word() : 0);
}

void Rendezvous::post() {
  ++phase_;
  PhaseLine& mine = *lines_[rank_];
  Word(mine.what[phase_ & 1]).store(current_.what, std::memory_order_relaxed);
  Word(mine.where[phase_ & 1]).store(current_.where, std::memory_order_relaxed);
  Word(mine.when[phase_ & 1]).store(current_.when, std::memory_order_relaxed);
  Word(mine.phase).store(phase_, std::memory_order_release);
}

bool Rendezvous::has_posted(int peer) const {
  return Word(lines_[peer]->phase).load(std::memory_order_acquire) >= phase_;
}

void Rendezvous::wait_for(int peer) {
  for (int spin = 0; spin < spins_; ++spin) {
    if (has_posted(peer)) return check_agreement(peer);
    pause_core();
  }
  wait_slowly(
      peer, [this](int r) { return has_posted(r); },
      [this](int) {
        return Call{sequence_, current_};
      });
  check_agreement(peer);
}

void Rendezvous::wait_until(int peer, const std::function<bool(int)>& ready, const std::function<Call(int)>& call) {
  for (int spin = 0; spin < spins_; ++spin) {
    if (ready(peer)) return;
    pause_core();
  }
  wait_slowly(peer, ready, call);
}

void Rendezvous::wait_all() {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_) wait_for(peer);
}

void Rendezvous::wait_slowly(int peer, const std::function<bool(int)>& ready, const std::function<Call(int)>& call) {
  const auto start = Clock::now();
  const double limit =
      policy_.activity != nullptr ? policy_.activity->limit(policy_.timeout_seconds) : policy_.timeout_seconds;
  while (!ready(peer)) {
    // Whoever gave up may have come to this collective before.
    if (is_aborted() && !ready(peer)) throw_aborted(call(peer));
    if (policy_.idle != nullptr) policy_.idle();
    const auto waited = Clock::now() - start;
    if (std::chrono::duration<double>(waited).count() > limit) {
      std::vector<int> missing;
      for (int r = 0; r < size(); ++r)
        if (!ready(r)) missing.push_back(policy_.first_rank + r);
      if (missing.empty()) return;
      fail(fmt::format("waited {:g} s in {} for {}", limit, call(peer).describe(policy_.activity),
                       name_ranks(missing.data(), static_cast<int>(missing.size()))));
    }
    if (waited < yields_before_sleep) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void Rendezvous::check_agreement(int peer) {
  PhaseLine& line = *lines_[peer];
  const Fingerprint other{Word(line.what[phase_ & 1]).load(std::memory_order_relaxed),
                          Word(line.where[phase_ & 1]).load(std::memory_order_relaxed),
                          Word(line.when[phase_ & 1]).load(std::memory_order_relaxed)};
  check_agreement(sequence_, current_, peer, other);
}

void Rendezvous::check_agreement(uint64_t sequence, const Fingerprint& mine, int peer, const Fingerprint& theirs) {
  const int first = policy_.first_rank;
  if (theirs != mine) fail(describe_mismatch(sequence, first + rank_, mine, first + peer, theirs, policy_.activity));
}

bool Rendezvous::is_aborted() const { return Word(notice_->state).load(std::memory_order_acquire) == 2; }

void Rendezvous::throw_if_aborted(const Call& call) const {
  if (is_aborted()) throw_aborted(call);
}

void Rendezvous::throw_aborted(const Call& call) const {
  throw PeerFailure(fmt::format("stopped waiting in {}: rank {} {}", call.describe(policy_.activity), notice_->rank,
                                static_cast<const char*>(notice_->message)));
}

void Rendezvous::abort(std::string_view reason) {
  uint64_t none = 0;
  if (!Word(notice_->state).compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
  const size_t length = std::min(reason.size(), sizeof(notice_->message) - 1);
  std::memcpy(notice_->message, reason.data(), length);
  notice_->message[length] = '\0';
  notice_->rank = static_cast<uint64_t>(policy_.first_rank + rank_);
  Word(notice_->state).store(2, std::memory_order_release);
}

void Rendezvous::fail(const std::string& reason) {
  abort("gave up: " + reason);
  throw PeerFailure(reason);
}

}  // namespace lockstep
