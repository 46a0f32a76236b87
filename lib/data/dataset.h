// A data set: rows that can be read in any order, from any thread, straight into the memory of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/picked_row.h"
#include "core/shape.h"
#include "core/stored_rows.h"

namespace lockstep {

enum class TargetKind { labels, values };  // a class index (int64) | target_width real numbers (float)

// Memory of `count` samples, owned by whoever made it. Of labels and targets only the one the data set has is set;
// neither they nor x are where a device that keeps the data set is told the picked rows.
struct Batch {
  float* x = nullptr;             // [count, sample_shape]
  int64_t* labels = nullptr;      // [count]
  float* targets = nullptr;       // [count, target_width]
  PickedRow* picked = nullptr;    // [count], or null
  int64_t count = 0;              // 0: this rank has no sample in this micro-batch
  std::span<const int64_t> rows;  // where the samples come from
};

class Dataset {
 public:
  struct Info {
    int64_t size = 0;
    Shape sample_shape;
    TargetKind target_kind = TargetKind::labels;
    int64_t target_width = 1;  // 1 for labels
    int64_t classes = 0;       // labels are in [0, classes); 0 for values
    bool per_rank = false;     // every rank holds other samples: nothing to shard
  };
  virtual ~Dataset() = default;

  const Info& info() const { return info_; }
  int64_t size() const { return info_.size; }
  const Shape& sample_shape() const { return info_.sample_shape; }
  TargetKind target_kind() const { return info_.target_kind; }
  int64_t target_width() const { return info_.target_width; }
  int64_t classes() const { return info_.classes; }
  bool per_rank() const { return info_.per_rank; }
  // What the samples and targets take in memory.
  virtual uint64_t memory_bytes() const { return 0; }
  // Where they lie, if all of them do and a copy is as good as read(); valid as long as the data set.
  virtual std::optional<StoredRows> stored() const { return std::nullopt; }
  void mark_per_rank() { info_.per_rank = true; }

  // Writes sample rows[i] to place i of out.x and of out.labels or out.targets; allocates nothing, out.count and
  // out.rows are not looked at. Throws Error for a row outside [0, size()).
  void read(std::span<const int64_t> rows, const Batch& out) const;
  void check(std::span<const int64_t> rows) const;  // throws Error for such a row

 protected:
  explicit Dataset(const Info& info) : info_(info) {}
  // read() with the rows checked; `offset` is added to each.
  virtual void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const = 0;
  Info info_;

 private:
  friend class Subset;
};

// Rows first .. first + count - 1 of another data set, which it owns. Throws Error when they don't exist.
class Subset final : public Dataset {
 public:
  Subset(std::unique_ptr<const Dataset> whole, int64_t first, int64_t count);
  uint64_t memory_bytes() const override { return whole_->memory_bytes(); }
  std::optional<StoredRows> stored() const override;

 protected:
  void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const override;

 private:
  std::unique_ptr<const Dataset> whole_;
  int64_t first_;
};

}  // namespace lockstep
