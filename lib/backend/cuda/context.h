// The GPU of this rank: its streams, its memory, and the only way in which the host waits for it, which never blocks
// inside CUDA: a kernel that waits for a dead rank would keep the host for ever, too.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "backend/cuda/step_values.h"
#include "backend/cuda/stream.h"
#include "core/buffer.h"

namespace lockstep::cuda {

class Context {
 public:
  // device: an index among those visible to this process. Every thread that calls CUDA makes an Entry first.
  explicit Context(int device);
  int device() const { return device_; }
  void enter() const;  // makes the device the calling thread's

  const Stream& compute() const { return compute_; }
  const Stream& copies() const { return copies_; }

  // Of what is being recorded (cuda_recorder.h).
  StepValues& values() const { return *values_; }

  // Zeroed device memory, freed before the context goes. Not for use during a step.
  Buffer allocate(size_t bytes) const;
  // Zeroed host memory that copies may read and write while the host goes on.
  Buffer pinned(size_t bytes) const;
  // Lets copies use host memory that somebody else made, until the result goes, which must be first.
  Buffer pin(const Buffer& host) const;
  // In stream order; the host memory must be pinned and stay as it is until the copy is done.
  void to_device(const Stream& stream, void* device, const void* host, size_t bytes) const;
  void to_host(const Stream& stream, void* host, const void* device, size_t bytes) const;
  void fill_zero(const Stream& stream, void* device, size_t bytes) const;

  // Called again and again while the host waits, with the seconds of this wait; may throw to end it.
  using Watch = std::function<void(double seconds)>;
  void set_watch(Watch watch) { watch_ = std::move(watch); }
  void wait(const Event& event) const;
  void synchronize(const Stream& stream) const;

 private:
  struct Entry {
    explicit Entry(int device);
  };
  int device_;
  Entry entry_;  // before the streams are made
  Stream compute_, copies_;
  Event synchronized_;
  Watch watch_;
  std::unique_ptr<StepValues> values_;  // the last one to come, as it uses the rest
};

}  // namespace lockstep::cuda
