// Numbers of a recorded step that change from one start to the next: the key of dropout's masks and the optimizer's.
// The host writes them in the order in which they are asked for, and they go to the device in one copy before the
// recording starts. Pinned memory for a few starts: the host need not wait for the one before.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backend/cuda/stream.h"
#include "core/buffer.h"

namespace lockstep::cuda {

class Context;

class StepValues {
 public:
  // direct: kernels get their numbers with the launch; recording: from here; renewing: numbers are written and nothing
  // is launched.
  enum class Mode { direct, recording, renewing };

  explicit StepValues(const Context& context) : context_(context) {}  // outlives this object

  void prepare();  // makes the memory, once; before the first recording
  Mode mode() const { return mode_; }
  void enter(Mode mode);  // the next number is the first
  void leave() { mode_ = Mode::direct; }

  // Where a recorded kernel finds the value, on the device; null: it is given the value itself. Throws Error where
  // there is no place left.
  template <class T>
  const T* place(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= granule);
    return mode_ == Mode::direct ? nullptr : static_cast<const T*>(put(&value, sizeof(T)));
  }
  // Likewise of the step's key; null: given with the launch.
  const uint64_t* key() const { return mode_ == Mode::direct ? nullptr : device_.as<const uint64_t>().data(); }

  // Queues the copy, in the compute stream. key: the step's.
  void send(uint64_t key);

 private:
  static constexpr size_t granule = 16, room = 16384;  // bytes; key first
  struct Place {
    Buffer host;
    Event sent;
  };
  const void* put(const void* value, size_t bytes);
  std::byte* host() { return static_cast<std::byte*>(values_.data()); }

  const Context& context_;
  Mode mode_ = Mode::direct;
  size_t used_ = granule;  // of the room
  Buffer values_;          // as the host wrote them last
  Buffer device_;
  std::array<Place, 4> places_;
  size_t sends_ = 0;
};

}  // namespace lockstep::cuda
