// The way of batches to where plans read them. A CPU reads them where the loader put them. A GPU gets them by copies
// that run beside what it computes: into one of two places, so that a batch arrives while the one before it is in use.
// Or it keeps the whole data set and is told the rows of each batch.
#pragma once

#include <cstddef>
#include <span>

#include "core/buffer.h"
#include "core/picked_row.h"

namespace lockstep {

class Feed {
 public:
  struct Batch {
    const void* x = nullptr;
    const void* targets = nullptr;
  };

  virtual ~Feed() = default;
  // Host memory that upload() and gather() may be given. It may be used until it is freed, which must be before the
  // feed is.
  virtual Buffer allocate(size_t bytes) = 0;
  // What is in the host memory now, for plans that run from here to the next upload. The host memory stays as it is
  // until release().
  virtual Batch upload(const void* x, size_t x_bytes, const void* targets, size_t target_bytes) = 0;
  // The same of a feed that keeps a data set (Backend::make_keeping_feed): a batch of these rows of it, one after
  // another. Throws Error for more rows than was said and for rows that there are not; of feeds that keep none.
  virtual Batch gather(std::span<const PickedRow> rows);
  // Returns when the host memory of the last upload or gather may change.
  virtual void release() = 0;
};

// For host memory: nothing moves.
class HostFeed final : public Feed {
 public:
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  Batch upload(const void* x, size_t, const void* targets, size_t) override { return {x, targets}; }
  void release() override {}
};

}  // namespace lockstep
