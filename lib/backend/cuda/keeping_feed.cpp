#include "backend/cuda/keeping_feed.h"

#include <limits>

#include "backend/cuda/gather_rows.h"
#include "core/error.h"

namespace lockstep {
namespace {

Buffer copy_of(const Memory& memory, const void* host, size_t bytes) {
  Buffer copy = memory.allocate(bytes);
  memory.upload(copy.data(), host, bytes);
  return copy;
}

size_t times(int64_t rows, size_t bytes) { return static_cast<size_t>(rows) * bytes; }

}  // namespace

KeepingFeed::KeepingFeed(const cuda::Context& context, const Memory& memory, const StoredRows& rows,
                         const ImageFormat& image, int64_t most_rows)
    : CudaFeed(context, times(most_rows * rows.sample_numel, sizeof(float)), times(most_rows, rows.target_bytes())),
      image_(image),
      kept_(rows),
      picked_(context.allocate(times(most_rows, sizeof(PickedRow)))) {
  if (image.channels > 0 && (image.channels * image.height * image.width != rows.sample_numel ||
                             rows.sample_numel > std::numeric_limits<uint32_t>::max()))
    throw_error("images of {} x {} x {}: expected {} numbers, and fewer than 2^32", image.channels, image.height,
                image.width, rows.sample_numel);
  if (rows.bytes != nullptr) {
    samples_ = copy_of(memory, rows.bytes, times(rows.count, rows.sample_bytes()));
    table_ = copy_of(memory, rows.table, StoredRows::table_bytes);
    kept_.bytes = samples_.as<uint8_t>().data();
    kept_.table = table_.as<float>().data();
  } else {
    samples_ = copy_of(memory, rows.floats, times(rows.count, rows.sample_bytes()));
    kept_.floats = samples_.as<float>().data();
  }
  if (rows.labels != nullptr) {
    targets_ = copy_of(memory, rows.labels, times(rows.count, rows.target_bytes()));
    kept_.labels = targets_.as<int64_t>().data();
  } else {
    targets_ = copy_of(memory, rows.values, times(rows.count, rows.target_bytes()));
    kept_.values = targets_.as<float>().data();
  }
  context.synchronize(context.compute());  // which copied; batches are made in another stream
}

// One array of picked rows is enough: the copy stream fills it and reads it in its own order.
Feed::Batch KeepingFeed::gather(std::span<const PickedRow> rows) {
  if (rows.size_bytes() > picked_.bytes())
    throw_error("a batch of {} rows: expected at most {}", rows.size(), picked_.bytes() / sizeof(PickedRow));
  for (const PickedRow& row : rows)
    if (row.row < 0 || row.row >= kept_.count) throw_error("row {} of a data set of {} samples", row.row, kept_.count);
  const Place& place = next_place();
  context_.to_device(context_.copies(), picked_.data(), rows.data(), rows.size_bytes());
  context_.copies().record(picked_read_);
  context_.copies().wait(place.used);
  cuda::gather_rows(context_.copies().get(), kept_, image_, picked_.as<const PickedRow>().data(), rows.size(),
                    {static_cast<float*>(place.x.data()), place.targets.data()});
  return hand_over(place, picked_read_);
}

}  // namespace lockstep
