// CUDA's streams and events, owned. Work in a stream runs in its order; between streams only events order anything.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep::cuda {

class Event {
 public:
  enum class Kind { untimed, timed };  // the time between two timed ones can be asked for
  explicit Event(Kind kind = Kind::untimed);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  cudaEvent_t get() const { return event_; }
  bool done() const;  // all work recorded before it; throws Error for what that work met

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {  // does not wait for CUDA's default stream
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  void record(const Event& event) const;  // done once all work so far is
  void wait(const Event& event) const;    // later work here waits for what was recorded; the host does not

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace lockstep::cuda
