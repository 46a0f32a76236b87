#include "backend/cuda/context.h"

#include <sched.h>

#include <chrono>
#include <thread>

#include "backend/cuda/cuda_check.h"

namespace lockstep::cuda {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int queries_before_yield = 2000;
constexpr auto yields_before_sleep = std::chrono::milliseconds(200);
constexpr auto between_looks = std::chrono::milliseconds(5);  // of the watch

}  // namespace

Context::Entry::Entry(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }
Context::Context(int device) : device_(device), entry_(device), values_(std::make_unique<StepValues>(*this)) {}

void Context::enter() const { check(cudaSetDevice(device_), "cudaSetDevice"); }

Buffer Context::allocate(size_t bytes) const {
  if (bytes == 0) return {};
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  Buffer buffer(memory, bytes, [](void* freed) { cudaFree(freed); });
  fill_zero(compute_, memory, bytes);
  synchronize(compute_);
  return buffer;
}

Buffer Context::pinned(size_t bytes) const {
  if (bytes == 0) return {};
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  Buffer buffer(memory, bytes, [](void* freed) { cudaFreeHost(freed); });
  for (std::byte& byte : buffer.as<std::byte>()) byte = std::byte{0};
  return buffer;
}

Buffer Context::pin(const Buffer& host) const {
  check(cudaHostRegister(host.data(), host.bytes(), cudaHostRegisterDefault), "cudaHostRegister");
  return Buffer(host.data(), host.bytes(), [](void* memory) { cudaHostUnregister(memory); });
}

void Context::to_device(const Stream& stream, void* device, const void* host, size_t bytes) const {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream.get()), "cudaMemcpyAsync");
}

void Context::to_host(const Stream& stream, void* host, const void* device, size_t bytes) const {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync");
}

void Context::fill_zero(const Stream& stream, void* device, size_t bytes) const {
  if (bytes == 0) return;
  check(cudaMemsetAsync(device, 0, bytes, stream.get()), "cudaMemsetAsync");
}

void Context::wait(const Event& event) const {
  for (int query = 0; query < queries_before_yield; ++query)
    if (event.done()) return;
  const auto start = Clock::now();
  auto next_look = start;
  while (!event.done()) {
    const auto now = Clock::now();
    if (now >= next_look) {
      if (watch_) watch_(std::chrono::duration<double>(now - start).count());
      next_look = now + between_looks;
    }
    if (now - start < yields_before_sleep) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void Context::synchronize(const Stream& stream) const {
  stream.record(synchronized_);
  wait(synchronized_);
}

}  // namespace lockstep::cuda
