#include "comm/failure.h"

namespace lockstep {

const char* name(Collective kind) {
  switch (kind) {
    case Collective::none: return "nothing";
    case Collective::all_reduce_sum: return "all_reduce_sum";
    case Collective::all_reduce: return "all_reduce";
    case Collective::broadcast: return "broadcast";
    case Collective::all_gather: return "all_gather";
    case Collective::barrier: return "barrier";
    case Collective::allocate: return "allocate";
    case Collective::all_reduce_sum_bf16: return "all_reduce_sum_bf16";
    case Collective::all_reduce_sum_fp16: return "all_reduce_sum_fp16";
    case Collective::sharded_sum: return "sharded_sum";
  }
  return "an unknown collective";
}

namespace {

// " (step 3)", or nothing when nothing is known.
std::string in_brackets(const Activity* activity, uint64_t when) {
  const std::string text = activity == nullptr ? "" : activity->describe(when);
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

Fingerprint Fingerprint::make(Collective kind, uint64_t count, uint64_t where, uint64_t when) {
  const uint64_t mask = (uint64_t{1} << 56) - 1;
  return {(static_cast<uint64_t>(kind) << 56) | (count & mask), where, when};
}

std::string Fingerprint::describe(const Activity* activity) const {
  std::string text = name(kind());
  if (kind() != Collective::barrier && kind() != Collective::none) text += fmt::format(" of {}", count());
  if (where != 0) text += fmt::format(" (at {:#x})", where);
  return text + in_brackets(activity, when);
}

std::string Call::describe(const Activity* activity) const {
  return fmt::format("{} #{}{}", name(fingerprint.kind()), sequence, in_brackets(activity, fingerprint.when));
}

std::string describe_mismatch(uint64_t sequence, int rank, const Fingerprint& mine, int peer, const Fingerprint& other,
                              const Activity* activity) {
  return fmt::format("collective #{} differs between ranks: rank {} calls {}, rank {} calls {}", sequence, rank,
                     mine.describe(activity), peer, other.describe(activity));
}

std::string name_ranks(const int* ranks, int count) {
  std::string text = count == 1 ? "rank " : "ranks ";
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += i + 1 == count ? " and " : ", ";
    text += fmt::format("{}", ranks[i]);
  }
  return text;
}

}  // namespace lockstep
