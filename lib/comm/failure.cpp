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
  }
  return "an unknown collective";
}

Fingerprint Fingerprint::make(Collective kind, uint64_t count, uint64_t where) {
  const uint64_t mask = (uint64_t{1} << 56) - 1;
  return {(static_cast<uint64_t>(kind) << 56) | (count & mask), where};
}

std::string Fingerprint::describe() const {
  std::string text = name(kind());
  if (kind() != Collective::barrier && kind() != Collective::none) text += fmt::format(" of {}", count());
  if (where != 0) text += fmt::format(" (at {:#x})", where);
  return text;
}

std::string describe_mismatch(uint64_t sequence, int rank, const Fingerprint& mine, int peer,
                              const Fingerprint& other) {
  return fmt::format("collective #{} differs between ranks: rank {} calls {}, rank {} calls {}", sequence, rank,
                     mine.describe(), peer, other.describe());
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
