#include "data/loader.h"

#include <csignal>
#include <utility>

#include "core/cpu_features.h"
#include "core/error.h"
#include "data/input_file.h"

namespace lockstep {

namespace {

// Measured: bytes are turned into 200 KB of floats in 20 us, and a batch from the thread costs 30 us with its wake-ups.
constexpr int64_t kInlineBytes = 262144, kAutoDepth = 2, kMaxDepth = 1024;

int64_t batch_bytes(const Dataset& dataset, int64_t rows, Deliver deliver) {
  if (deliver == Deliver::rows) return rows * static_cast<int64_t>(sizeof(PickedRow));
  const auto numel = static_cast<uint64_t>(dataset.sample_shape().with_front(rows).numel());
  return static_cast<int64_t>(checked_product(numel, sizeof(float), "a batch"));
}

// Signals are for the thread that trains: it checks its flags at the boundaries of steps.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

int64_t prefetch_depth(int64_t setting, int64_t batch_bytes) {
  if (setting > kMaxDepth) throw_error("prefetch: expected at most {} batches, found {}", kMaxDepth, setting);
  if (setting >= 0) return setting;
  return batch_bytes > kInlineBytes ? kAutoDepth : 0;
}

BatchLoader::BatchLoader(const Dataset& dataset, int64_t max_rows, int64_t prefetch, NextRows next_rows, Change change,
                         const Allocate& allocate, Deliver deliver)
    : dataset_(dataset),
      max_rows_(max_rows),
      deliver_(deliver),
      depth_(prefetch_depth(prefetch, batch_bytes(dataset, max_rows, deliver))),
      next_rows_(std::move(next_rows)),
      change_(std::move(change)),
      slots_(static_cast<size_t>(depth_) + 1) {
  for (Slot& slot : slots_) {
    slot.rows.reserve(static_cast<size_t>(max_rows));
    if (deliver == Deliver::samples) {
      allocate_samples(slot, allocate);
    } else {
      slot.picked = allocate(static_cast<size_t>(batch_bytes(dataset, max_rows, deliver)));
      slot.batch.picked = slot.picked.as<PickedRow>().data();
    }
  }
  if (depth_ > 0) thread_ = std::thread([this] { run(); });
}

void BatchLoader::allocate_samples(Slot& slot, const Allocate& allocate) const {
  const bool labels = dataset_.target_kind() == TargetKind::labels;
  slot.x = allocate(static_cast<size_t>(batch_bytes(dataset_, max_rows_, Deliver::samples)));
  slot.targets = allocate(static_cast<size_t>(max_rows_) *
                          (labels ? sizeof(int64_t) : sizeof(float) * static_cast<size_t>(dataset_.target_width())));
  slot.batch.x = slot.x.as<float>().data();
  slot.batch.labels = labels ? slot.targets.as<int64_t>().data() : nullptr;
  slot.batch.targets = labels ? nullptr : slot.targets.as<float>().data();
}

BatchLoader::~BatchLoader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  thread_.join();
}

void BatchLoader::fill(Slot& slot) {
  const std::span<const int64_t> rows = next_rows_();
  if (static_cast<int64_t>(rows.size()) > max_rows_) {
    throw_error("a batch of {} rows: expected at most {}", rows.size(), max_rows_);
  }
  const TraceSpan span(trace_, TraceKind::batch, "batch", static_cast<int64_t>(rows.size()));
  slot.rows.assign(rows.begin(), rows.end());
  slot.batch.rows = slot.rows;
  slot.batch.count = static_cast<int64_t>(rows.size());
  if (deliver_ == Deliver::samples) {
    dataset_.read(slot.rows, slot.batch);
  } else {
    dataset_.check(rows);
    for (size_t i = 0; i < rows.size(); ++i) slot.batch.picked[i] = {.row = rows[i], .draw = {}};
  }
  if (change_) change_(slot.batch);
}

void BatchLoader::start(int64_t batches, const std::function<void()>& prepare) {
  {
    std::unique_lock lock(mutex_);
    batches_ = 0;  // the thread finds nothing more to do
    done_.wait(lock, [this] { return !filling_; });
    consumed_ = produced_ = released_ = 0;
    failure_ = nullptr;
  }
  if (prepare) prepare();
  {
    const std::lock_guard lock(mutex_);
    batches_ = batches;
  }
  work_.notify_one();
}

const Batch& BatchLoader::next() {
  if (consumed_ == batches_) throw_error("the loader has given all {} batches of this pass", batches_);
  if (depth_ == 0) {
    if (failure_) std::rethrow_exception(failure_);
    try {
      fill(slots_[0]);
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
    ++consumed_;
    return slots_[0].batch;
  }
  std::unique_lock lock(mutex_);
  released_ = consumed_;  // the caller is done with the batch it had
  work_.notify_one();
  done_.wait(lock, [this] { return produced_ > consumed_ || failure_; });
  if (produced_ == consumed_) std::rethrow_exception(failure_);
  return slot(consumed_++).batch;
}

void BatchLoader::run() {
  block_signals();
  flush_denormals();
  const auto has_work = [this] {
    return !failure_ && produced_ < batches_ && produced_ - released_ < static_cast<int64_t>(slots_.size());
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stop_ || has_work(); });
    if (stop_) return;
    filling_ = true;
    Slot& target = slot(produced_);
    lock.unlock();
    std::exception_ptr failure;
    try {
      fill(target);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    filling_ = false;
    if (failure) {
      failure_ = failure;
    } else {
      ++produced_;
    }
    done_.notify_one();
  }
}

}  // namespace lockstep
