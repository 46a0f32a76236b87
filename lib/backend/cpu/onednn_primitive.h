// A oneDNN primitive with its argument list made once: run() only sets data pointers and executes.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/onednn_api.h"

namespace lockstep::onednn {

class Primitive {
 public:
  Primitive() = default;
  // args: DNNL_ARG_* of the operands in the order in which run() gets their pointers.
  Primitive(const Context& context, const PrimitiveDesc& desc, std::span<const int> args);

  explicit operator bool() const { return primitive_ != nullptr; }
  size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  // Pointers must be aligned to 64 bytes for full speed; scratchpad: scratchpad_bytes() or null if that is 0.
  void run(std::initializer_list<const void*> data, void* scratchpad);

 private:
  void point(size_t slot, const void* data);

  Context context_;
  std::shared_ptr<dnnl_primitive> primitive_;
  std::vector<std::shared_ptr<dnnl_memory>> memories_;
  std::vector<dnnl_exec_arg_t> args_;
  std::vector<const void*> pointers_;
  size_t scratchpad_bytes_ = 0;
};

}  // namespace lockstep::onednn
