#include "backend/cpu/onednn_primitive.h"

namespace lockstep::onednn {

Primitive::Primitive(const Context& context, const PrimitiveDesc& desc, std::span<const int> args) : context_(context) {
  dnnl_primitive_t primitive = nullptr;
  check(dnnl_primitive_create(&primitive, desc.handle()));
  primitive_.reset(primitive, dnnl_primitive_destroy);
  const auto add = [&](int arg, const MemoryDesc& layout) {
    memories_.emplace_back(make_memory(context, layout), dnnl_memory_destroy);
    args_.push_back({arg, memories_.back().get()});
    pointers_.push_back(nullptr);
  };
  for (const int arg : args) add(arg, desc.argument(arg));
  const MemoryDesc scratchpad = desc.argument(DNNL_ARG_SCRATCHPAD);
  scratchpad_bytes_ = scratchpad.bytes();
  if (scratchpad_bytes_ > 0) add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

// Version 2 zeroes the padding of a layout each time a pointer is set, so an unchanged one is left alone.
void Primitive::point(size_t slot, const void* data) {
  if (pointers_[slot] == data) return;
  check(dnnl_memory_set_data_handle(memories_[slot].get(), const_cast<void*>(data)));
  pointers_[slot] = data;
}

void Primitive::run(std::initializer_list<const void*> data, void* scratchpad) {
  size_t slot = 0;
  for (const void* pointer : data) point(slot++, pointer);
  if (scratchpad_bytes_ > 0) point(slot++, scratchpad);
  check(dnnl_primitive_execute(primitive_.get(), context_.stream(), static_cast<int>(slot), args_.data()));
}

}  // namespace lockstep::onednn
