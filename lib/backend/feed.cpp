#include "backend/feed.h"

#include "core/error.h"

namespace lockstep {

Feed::Batch Feed::gather(std::span<const PickedRow> rows) {
  throw_error("a batch of {} rows: this feed keeps no data set", rows.size());
}

}  // namespace lockstep
