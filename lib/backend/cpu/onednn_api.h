// oneDNN 2.6 and 3.x behind one small interface. onednn_api.cpp is the only file that knows which of the two is
// installed: version 2 describes an operation first (op descriptors), version 3 makes primitive descriptors directly.
#pragma once

#include <dnnl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>

#include "core/shape.h"

namespace lockstep::onednn {

// What the CPU has for products of bf16 numbers, within ONEDNN_MAX_CPU_ISA.
enum class Bf16Hardware { none, avx512, amx };
Bf16Hardware bf16_hardware();

// Throws Error naming the caller when `status` is not success.
void check(dnnl_status_t status, std::source_location where = std::source_location::current());

// The CPU engine and a stream on it. One per plan: oneDNN itself shares compiled code between engines.
class Context {
 public:
  Context();
  dnnl_engine_t engine() const { return engine_.get(); }
  dnnl_stream_t stream() const { return stream_.get(); }

 private:
  std::shared_ptr<dnnl_engine> engine_;
  std::shared_ptr<dnnl_stream> stream_;
};

// Type and layout of one operand. An empty one stands for "no such operand" (a layer without bias).
class MemoryDesc {
 public:
  MemoryDesc() = default;
  // tag any: the primitive chooses. type: f32, bf16 or f16.
  MemoryDesc(std::span<const int64_t> dims, dnnl_format_tag_t tag, DType type = DType::f32);
  explicit MemoryDesc(std::shared_ptr<const void> handle) : handle_(std::move(handle)) {}

  explicit operator bool() const { return handle_ != nullptr; }
  bool operator==(const MemoryDesc& other) const;
  size_t bytes() const;  // padding included
  const void* handle() const { return handle_.get(); }

 private:
  std::shared_ptr<const void> handle_;  // dnnl_memory_desc_t* in version 2, dnnl_memory_desc_t in version 3
};

// An operation with its implementation chosen. Empty when the library has none for the given layouts.
class PrimitiveDesc {
 public:
  PrimitiveDesc() = default;
  explicit PrimitiveDesc(dnnl_primitive_desc_t owned);
  explicit operator bool() const { return handle_ != nullptr; }
  const_dnnl_primitive_desc_t handle() const { return handle_.get(); }
  MemoryDesc argument(int arg) const;  // layout of DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_SCRATCHPAD, ...
  std::string implementation() const;  // "jit:avx512_core"

 private:
  std::shared_ptr<dnnl_primitive_desc> handle_;
};

struct ConvolutionGeometry {
  dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
  std::array<int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};  // dilation as in PyTorch: 1 is dense
};

// Forward results are followed by a ReLU where `relu`. Scratch memory is the caller's (DNNL_ARG_SCRATCHPAD).
// The operands are named as in forward; a backward pass reads or writes their gradients in these layouts.
PrimitiveDesc convolution_forward(const Context&, const ConvolutionGeometry&, const MemoryDesc& src,
                                  const MemoryDesc& weights, const MemoryDesc& bias, const MemoryDesc& dst,
                                  bool training, bool relu);
PrimitiveDesc convolution_backward_data(const Context&, const ConvolutionGeometry&, const MemoryDesc& src,
                                        const MemoryDesc& weights, const MemoryDesc& dst, const PrimitiveDesc& forward);
PrimitiveDesc convolution_backward_weights(const Context&, const ConvolutionGeometry&, const MemoryDesc& src,
                                           const MemoryDesc& weights, const MemoryDesc& bias, const MemoryDesc& dst,
                                           const PrimitiveDesc& forward);
PrimitiveDesc inner_product_forward(const Context&, const MemoryDesc& src, const MemoryDesc& weights,
                                    const MemoryDesc& bias, const MemoryDesc& dst, bool training, bool relu);
PrimitiveDesc inner_product_backward_data(const Context&, const MemoryDesc& src, const MemoryDesc& weights,
                                          const MemoryDesc& dst, const PrimitiveDesc& forward);
PrimitiveDesc inner_product_backward_weights(const Context&, const MemoryDesc& src, const MemoryDesc& weights,
                                             const MemoryDesc& bias, const MemoryDesc& dst,
                                             const PrimitiveDesc& forward);
PrimitiveDesc matmul(const Context&, const MemoryDesc& src, const MemoryDesc& weights, const MemoryDesc& bias,
                     const MemoryDesc& dst, bool relu);
PrimitiveDesc reorder(const Context&, const MemoryDesc& from, const MemoryDesc& to);

// A memory object without data yet; the caller destroys it.
dnnl_memory_t make_memory(const Context&, const MemoryDesc&);

}  // namespace lockstep::onednn
