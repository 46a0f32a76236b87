#include "backend/backend.h"

#include "core/error.h"

namespace lockstep {

std::unique_ptr<Feed> Backend::make_keeping_feed(const StoredRows& rows, const ImageFormat&, int64_t) {
  throw_error("a data set of {} rows: {} keeps none", rows.count, name());
}

}  // namespace lockstep
