#include "backend/cpu/onednn_api.h"

#include "core/error.h"

namespace lockstep::onednn {

void check(dnnl_status_t status, std::source_location where) {
  if (status != dnnl_success)
    throw_error("oneDNN call failed in {} ({}:{}): status {}", where.function_name(), where.file_name(), where.line(),
                static_cast<int>(status));
}

Bf16Hardware bf16_hardware() {
  const auto isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa());  // a set of bits
  const auto has = [isa](dnnl_cpu_isa_t wanted) { return (isa & static_cast<unsigned>(wanted)) == wanted; };
  if (has(dnnl_cpu_isa_avx512_core_amx)) return Bf16Hardware::amx;
  return has(dnnl_cpu_isa_avx512_core_bf16) ? Bf16Hardware::avx512 : Bf16Hardware::none;
}

Context::Context() {
  dnnl_engine_t engine = nullptr;
  check(dnnl_engine_create(&engine, dnnl_cpu, 0));
  engine_.reset(engine, dnnl_engine_destroy);
  dnnl_stream_t stream = nullptr;
  check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
  stream_.reset(stream, dnnl_stream_destroy);
}

PrimitiveDesc::PrimitiveDesc(dnnl_primitive_desc_t owned) : handle_(owned, dnnl_primitive_desc_destroy) {}

std::string PrimitiveDesc::implementation() const {
  const char* text = nullptr;
  check(dnnl_primitive_desc_query(handle(), dnnl_query_impl_info_str, 0, &text));
  return text;
}

namespace {

class Attributes {
 public:
  explicit Attributes(bool relu) {
    check(dnnl_primitive_attr_create(&attr_));
    check(dnnl_primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user));
    if (relu) append_relu();
  }
  ~Attributes() { dnnl_primitive_attr_destroy(attr_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  operator const_dnnl_primitive_attr_t() const { return attr_; }

 private:
  void append_relu();  // differs by version
  dnnl_primitive_attr_t attr_ = nullptr;
};

dnnl_data_type_t data_type(DType type) {
  switch (type) {
    case DType::f32: return dnnl_f32;
    case DType::bf16: return dnnl_bf16;
    case DType::f16: return dnnl_f16;
    case DType::i64: break;
  }
  throw_error("oneDNN computes with no {}", name(type));
}

dnnl_prop_kind_t forward_kind(bool training) { return training ? dnnl_forward_training : dnnl_forward_inference; }

// oneDNN counts the holes between kernel elements: 0 is dense.
std::array<int64_t, 2> holes(const ConvolutionGeometry& g) { return {g.dilation[0] - 1, g.dilation[1] - 1}; }

// "Not implemented for these layouts" is an answer, everything else an error.
PrimitiveDesc adopt(dnnl_status_t status, dnnl_primitive_desc_t desc,
                    std::source_location where = std::source_location::current()) {
  if (status == dnnl_unimplemented) return PrimitiveDesc();
  check(status, where);
  return PrimitiveDesc(desc);
}

}  // namespace

#if DNNL_VERSION_MAJOR < 3

namespace {

const dnnl_memory_desc_t* raw(const MemoryDesc& desc) { return static_cast<const dnnl_memory_desc_t*>(desc.handle()); }

template <class OpDesc>
PrimitiveDesc make(const Context& context, const OpDesc& op, bool relu, const PrimitiveDesc& forward,
                   std::source_location where = std::source_location::current()) {
  const Attributes attributes(relu);
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_primitive_desc_create(&desc, &op, attributes, context.engine(), forward.handle());
  return adopt(status, desc, where);
}

}  // namespace

void Attributes::append_relu() {
  dnnl_post_ops_t ops = nullptr;
  check(dnnl_post_ops_create(&ops));
  const std::shared_ptr<dnnl_post_ops> owner(ops, dnnl_post_ops_destroy);
  check(dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f));
  check(dnnl_primitive_attr_set_post_ops(attr_, ops));
}

MemoryDesc::MemoryDesc(std::span<const int64_t> dims, dnnl_format_tag_t tag, DType type) {
  auto desc = std::make_shared<dnnl_memory_desc_t>();
  check(dnnl_memory_desc_init_by_tag(desc.get(), static_cast<int>(dims.size()), dims.data(), data_type(type), tag));
  handle_ = std::move(desc);
}

bool MemoryDesc::operator==(const MemoryDesc& other) const {
  if (!handle_ || !other.handle_) return handle_ == other.handle_;
  return dnnl_memory_desc_equal(raw(*this), raw(other)) != 0;
}

size_t MemoryDesc::bytes() const { return handle_ ? dnnl_memory_desc_get_size(raw(*this)) : 0; }

MemoryDesc PrimitiveDesc::argument(int arg) const {
  const dnnl_memory_desc_t* desc = dnnl_primitive_desc_query_md(handle(), dnnl_query_exec_arg_md, arg);
  if (desc == nullptr || desc->ndims == 0) return MemoryDesc();
  return MemoryDesc(std::make_shared<dnnl_memory_desc_t>(*desc));
}

PrimitiveDesc convolution_forward(const Context& context, const ConvolutionGeometry& g, const MemoryDesc& src,
                                  const MemoryDesc& weights, const MemoryDesc& bias, const MemoryDesc& dst,
                                  bool training, bool relu) {
  dnnl_convolution_desc_t op;
  check(dnnl_dilated_convolution_forward_desc_init(&op, forward_kind(training), g.algorithm, raw(src), raw(weights),
                                                   raw(bias), raw(dst), g.stride.data(), holes(g).data(),
                                                   g.padding.data(), g.padding.data()));
  return make(context, op, relu, PrimitiveDesc());
}

PrimitiveDesc convolution_backward_data(const Context& context, const ConvolutionGeometry& g, const MemoryDesc& src,
                                        const MemoryDesc& weights, const MemoryDesc& dst,
                                        const PrimitiveDesc& forward) {
  dnnl_convolution_desc_t op;
  check(dnnl_dilated_convolution_backward_data_desc_init(&op, g.algorithm, raw(src), raw(weights), raw(dst),
                                                         g.stride.data(), holes(g).data(), g.padding.data(),
                                                         g.padding.data()));
  return make(context, op, false, forward);
}

PrimitiveDesc convolution_backward_weights(const Context& context, const ConvolutionGeometry& g, const MemoryDesc& src,
                                           const MemoryDesc& weights, const MemoryDesc& bias, const MemoryDesc& dst,
                                           const PrimitiveDesc& forward) {
  dnnl_convolution_desc_t op;
  check(dnnl_dilated_convolution_backward_weights_desc_init(&op, g.algorithm, raw(src), raw(weights), raw(bias),
                                                            raw(dst), g.stride.data(), holes(g).data(),
                                                            g.padding.data(), g.padding.data()));
  return make(context, op, false, forward);
}

PrimitiveDesc inner_product_forward(const Context& context, const MemoryDesc& src, const MemoryDesc& weights,
                                    const MemoryDesc& bias, const MemoryDesc& dst, bool training, bool relu) {
  dnnl_inner_product_desc_t op;
  check(dnnl_inner_product_forward_desc_init(&op, forward_kind(training), raw(src), raw(weights), raw(bias), raw(dst)));
  return make(context, op, relu, PrimitiveDesc());
}

PrimitiveDesc inner_product_backward_data(const Context& context, const MemoryDesc& src, const MemoryDesc& weights,
                                          const MemoryDesc& dst, const PrimitiveDesc& forward) {
  dnnl_inner_product_desc_t op;
  check(dnnl_inner_product_backward_data_desc_init(&op, raw(src), raw(weights), raw(dst)));
  return make(context, op, false, forward);
}

PrimitiveDesc inner_product_backward_weights(const Context& context, const MemoryDesc& src, const MemoryDesc& weights,
                                             const MemoryDesc& bias, const MemoryDesc& dst,
                                             const PrimitiveDesc& forward) {
  dnnl_inner_product_desc_t op;
  check(dnnl_inner_product_backward_weights_desc_init(&op, raw(src), raw(weights), raw(bias), raw(dst)));
  return make(context, op, false, forward);
}

PrimitiveDesc matmul(const Context& context, const MemoryDesc& src, const MemoryDesc& weights, const MemoryDesc& bias,
                     const MemoryDesc& dst, bool relu) {
  dnnl_matmul_desc_t op;
  check(dnnl_matmul_desc_init(&op, raw(src), raw(weights), raw(bias), raw(dst)));
  return make(context, op, relu, PrimitiveDesc());
}

PrimitiveDesc reorder(const Context& context, const MemoryDesc& from, const MemoryDesc& to) {
  const Attributes attributes(false);
  dnnl_primitive_desc_t desc = nullptr;
  const auto status =
      dnnl_reorder_primitive_desc_create(&desc, raw(from), context.engine(), raw(to), context.engine(), attributes);
  return adopt(status, desc);
}

dnnl_memory_t make_memory(const Context& context, const MemoryDesc& desc) {
  dnnl_memory_t memory = nullptr;
  check(dnnl_memory_create(&memory, raw(desc), context.engine(), DNNL_MEMORY_NONE));
  return memory;
}

#else

namespace {

const_dnnl_memory_desc_t raw(const MemoryDesc& desc) { return static_cast<const_dnnl_memory_desc_t>(desc.handle()); }

MemoryDesc own(dnnl_memory_desc_t desc) {
  return MemoryDesc(std::shared_ptr<const void>(desc, [desc](const void*) { dnnl_memory_desc_destroy(desc); }));
}

}  // namespace

void Attributes::append_relu() {
  dnnl_post_ops_t ops = nullptr;
  check(dnnl_post_ops_create(&ops));
  const std::shared_ptr<dnnl_post_ops> owner(ops, dnnl_post_ops_destroy);
  check(dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f));
  check(dnnl_primitive_attr_set_post_ops(attr_, ops));
}

MemoryDesc::MemoryDesc(std::span<const int64_t> dims, dnnl_format_tag_t tag, DType type) {
  dnnl_memory_desc_t desc = nullptr;
  check(dnnl_memory_desc_create_with_tag(&desc, static_cast<int>(dims.size()), dims.data(), data_type(type), tag));
  *this = own(desc);
}

bool MemoryDesc::operator==(const MemoryDesc& other) const {
  if (!handle_ || !other.handle_) return handle_ == other.handle_;
  return dnnl_memory_desc_equal(raw(*this), raw(other)) != 0;
}

size_t MemoryDesc::bytes() const { return handle_ ? dnnl_memory_desc_get_size(raw(*this)) : 0; }

MemoryDesc PrimitiveDesc::argument(int arg) const {
  const_dnnl_memory_desc_t desc = dnnl_primitive_desc_query_md(handle(), dnnl_query_exec_arg_md, arg);
  if (desc == nullptr || dnnl_memory_desc_get_size(desc) == 0) return MemoryDesc();
  dnnl_memory_desc_t copy = nullptr;
  check(dnnl_memory_desc_clone(&copy, desc));
  return own(copy);
}

PrimitiveDesc convolution_forward(const Context& context, const ConvolutionGeometry& g, const MemoryDesc& src,
                                  const MemoryDesc& weights, const MemoryDesc& bias, const MemoryDesc& dst,
                                  bool training, bool relu) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_convolution_forward_primitive_desc_create(
      &desc, context.engine(), forward_kind(training), g.algorithm, raw(src), raw(weights), raw(bias), raw(dst),
      g.stride.data(), holes(g).data(), g.padding.data(), g.padding.data(), Attributes(relu));
  return adopt(status, desc);
}

PrimitiveDesc convolution_backward_data(const Context& context, const ConvolutionGeometry& g, const MemoryDesc& src,
                                        const MemoryDesc& weights, const MemoryDesc& dst,
                                        const PrimitiveDesc& forward) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_convolution_backward_data_primitive_desc_create(
      &desc, context.engine(), g.algorithm, raw(src), raw(weights), raw(dst), g.stride.data(), holes(g).data(),
      g.padding.data(), g.padding.data(), forward.handle(), Attributes(false));
  return adopt(status, desc);
}

PrimitiveDesc convolution_backward_weights(const Context& context, const ConvolutionGeometry& g, const MemoryDesc& src,
                                           const MemoryDesc& weights, const MemoryDesc& bias, const MemoryDesc& dst,
                                           const PrimitiveDesc& forward) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_convolution_backward_weights_primitive_desc_create(
      &desc, context.engine(), g.algorithm, raw(src), raw(weights), raw(bias), raw(dst), g.stride.data(),
      holes(g).data(), g.padding.data(), g.padding.data(), forward.handle(), Attributes(false));
  return adopt(status, desc);
}

PrimitiveDesc inner_product_forward(const Context& context, const MemoryDesc& src, const MemoryDesc& weights,
                                    const MemoryDesc& bias, const MemoryDesc& dst, bool training, bool relu) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_inner_product_forward_primitive_desc_create(
      &desc, context.engine(), forward_kind(training), raw(src), raw(weights), raw(bias), raw(dst), Attributes(relu));
  return adopt(status, desc);
}

PrimitiveDesc inner_product_backward_data(const Context& context, const MemoryDesc& src, const MemoryDesc& weights,
                                          const MemoryDesc& dst, const PrimitiveDesc& forward) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_inner_product_backward_data_primitive_desc_create(
      &desc, context.engine(), raw(src), raw(weights), raw(dst), forward.handle(), Attributes(false));
  return adopt(status, desc);
}

PrimitiveDesc inner_product_backward_weights(const Context& context, const MemoryDesc& src, const MemoryDesc& weights,
                                             const MemoryDesc& bias, const MemoryDesc& dst,
                                             const PrimitiveDesc& forward) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_inner_product_backward_weights_primitive_desc_create(
      &desc, context.engine(), raw(src), raw(weights), raw(bias), raw(dst), forward.handle(), Attributes(false));
  return adopt(status, desc);
}

PrimitiveDesc matmul(const Context& context, const MemoryDesc& src, const MemoryDesc& weights, const MemoryDesc& bias,
                     const MemoryDesc& dst, bool relu) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_matmul_primitive_desc_create(&desc, context.engine(), raw(src), raw(weights), raw(bias),
                                                        raw(dst), Attributes(relu));
  return adopt(status, desc);
}

PrimitiveDesc reorder(const Context& context, const MemoryDesc& from, const MemoryDesc& to) {
  dnnl_primitive_desc_t desc = nullptr;
  const auto status = dnnl_reorder_primitive_desc_create(&desc, raw(from), context.engine(), raw(to), context.engine(),
                                                         Attributes(false));
  return adopt(status, desc);
}

dnnl_memory_t make_memory(const Context& context, const MemoryDesc& desc) {
  dnnl_memory_t memory = nullptr;
  check(dnnl_memory_create(&memory, raw(desc), context.engine(), DNNL_MEMORY_NONE));
  return memory;
}

#endif

}  // namespace lockstep::onednn
