// Batches of a data set, one after another, in memory made once. Assembled when asked for, or some ahead by a thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/buffer.h"
#include "core/trace.h"
#include "data/dataset.h"

namespace lockstep {

// The batches to assemble ahead: `setting` if >= 0, else (-1, automatic) 2 for batches over 256 KiB and 0 for smaller
// ones, which are copied faster than a thread is woken.
int64_t prefetch_depth(int64_t setting, int64_t batch_bytes);

// samples: what the data set holds of the rows. rows: which they are, for a device that keeps the data set.
enum class Deliver { samples, rows };

class BatchLoader {
 public:
  // Gives the rows of the next batch, at most max_rows; the span need only live until the next call. No rows is a batch
  // too (count 0). With prefetch it is called from the loader's thread, never while start() runs `prepare`.
  using NextRows = std::function<std::span<const int64_t>()>;
  // Changes a batch after it was read, where it was read: in the loader's thread.
  using Change = std::function<void(const Batch&)>;

  // dataset must outlive the loader. prefetch: see prefetch_depth. allocate: makes the batches' memory.
  using Allocate = std::function<Buffer(size_t bytes)>;
  BatchLoader(const Dataset& dataset, int64_t max_rows, int64_t prefetch, NextRows next_rows, Change change = {},
              const Allocate& allocate = Buffer::host, Deliver deliver = Deliver::samples);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Begins a pass of `batches` batches: drops what was assembled ahead, runs `prepare` in the calling thread while
  // nothing else runs (set the sampler's epoch there), then goes to work. next_rows is called `batches` times, not
  // more.
  void start(int64_t batches, const std::function<void()>& prepare = {});

  // The next batch, valid until the following next() or start(). What went wrong in the thread arrives here, after
  // the batches before it, and again at every further call until start(). Throws Error after the last batch of the
  // pass.
  const Batch& next();

  // The batches that are assembled go to the row of the loader's thread, or of the caller where there is none. Before
  // the first start().
  void trace(TraceRow* own_thread, TraceRow* caller) { trace_ = depth_ > 0 ? own_thread : caller; }

  int64_t remaining() const { return batches_ - consumed_; }
  int64_t depth() const { return depth_; }  // batches assembled ahead; 0: no thread

 private:
  struct Slot {
    Buffer x, targets;          // of samples
    Buffer picked;              // of rows
    std::vector<int64_t> rows;  // capacity max_rows
    Batch batch;
  };
  void allocate_samples(Slot& slot, const Allocate& allocate) const;
  void fill(Slot& slot);
  void run();  // the thread
  Slot& slot(int64_t batch) { return slots_[static_cast<size_t>(batch) % slots_.size()]; }

  const Dataset& dataset_;
  const int64_t max_rows_;
  const Deliver deliver_;
  const int64_t depth_;
  const NextRows next_rows_;
  const Change change_;
  std::vector<Slot> slots_;  // depth_ ahead and the one in use
  TraceRow* trace_ = nullptr;

  // Batch numbers within the pass. released_: those before it may be overwritten.
  int64_t batches_ = 0, consumed_ = 0, produced_ = 0, released_ = 0;
  bool filling_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::mutex mutex_;  // guards the six above while there is a thread
  std::condition_variable work_, done_;
  std::thread thread_;
};

}  // namespace lockstep
