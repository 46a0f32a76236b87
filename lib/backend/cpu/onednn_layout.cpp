#include "backend/cpu/onednn_layout.h"

#include <array>
#include <limits>
#include <string>

#include "core/buffer.h"
#include "core/error.h"

namespace lockstep::onednn {

MemoryDesc activation_layout(const TensorDesc& desc) {
  const auto with = [&](dnnl_format_tag_t tag) { return MemoryDesc(desc.shape.dims(), tag, desc.dtype); };
  const int64_t block = desc.channel_block;
  if (desc.shape.rank() == 2 && block == 1) return with(dnnl_ab);
  if (desc.shape.rank() == 4) {
    if (block == 1) return with(dnnl_nchw);
    // A block of all channels is both; bf16 kernels look for the name channels last, fp32 kernels for the other.
    if (block == desc.shape[1] && desc.dtype != DType::f32) return with(dnnl_nhwc);
    if (desc.shape[1] % block == 0 && block == 8) return with(dnnl_nChw8c);
    if (desc.shape[1] % block == 0 && block == 16) return with(dnnl_nChw16c);
    if (block == desc.shape[1]) return with(dnnl_nhwc);
  }
  throw_error("activation {} with channel block {}: expected [N, C] or [N, C, H, W] with a block of 1, 8, 16 or C",
              desc.shape.str(), block);
}

std::vector<int64_t> channel_blocks(int64_t channels) {
  std::vector<int64_t> blocks;
  for (const int64_t block : {16, 8, 1})
    if (channels % block == 0) blocks.push_back(block);
  return blocks;
}

double cost(const PrimitiveDesc& desc) {
  if (!desc) return std::numeric_limits<double>::infinity();
  const std::string name = desc.implementation();
  if (name.starts_with("ref") || name.starts_with("simple")) return kReferenceCost;
  if (name.starts_with("gemm") || name.starts_with("x64:gemm")) return 4;
  return 0;
}

// Outside of steps (initialisation, checkpoints), so these may allocate. On a stream of their own: a checkpoint's
// thread converts while a plan computes.
static void convert(const MemoryDesc& from, std::span<const float> source, const MemoryDesc& to,
                    std::span<float> target) {
  if (source.size_bytes() < from.bytes() || target.size_bytes() < to.bytes())
    throw_error("weight layout: expected {} and {} bytes, found {} and {}", from.bytes(), to.bytes(),
                source.size_bytes(), target.size_bytes());
  const Context context;
  Primitive copy(context, reorder(context, from, to), std::array{DNNL_ARG_FROM, DNNL_ARG_TO});
  const Buffer scratchpad = Buffer::host(copy.scratchpad_bytes());
  copy.run({source.data(), target.data()}, scratchpad.data());
}

void StoredWeights::store(std::span<const float> canonical, std::span<float> stored) const {
  convert(canonical_, canonical, stored_, stored);
}

void StoredWeights::load(std::span<const float> stored, std::span<float> canonical) const {
  convert(stored_, stored, canonical_, canonical);
}

MemoryDesc stored_layout(const WeightFormatPtr& format, const MemoryDesc& canonical) {
  if (!format) return canonical;
  const auto* weights = dynamic_cast<const StoredWeights*>(format.get());
  if (weights == nullptr) throw_error("weights: stored in a format that oneDNN doesn't know");
  return weights->layout();
}

WeightFormatPtr weight_format(const MemoryDesc& canonical, const MemoryDesc& stored) {
  if (stored == canonical) return nullptr;
  return std::make_shared<StoredWeights>(canonical, stored);
}

Conversion::Conversion(const Context& context, const MemoryDesc& from, const MemoryDesc& to) : bytes_(to.bytes()) {
  if (from == to) return;
  const PrimitiveDesc desc = reorder(context, from, to);
  if (!desc) throw_error("oneDNN has no copy between two layouts of one tensor");
  primitive_ = Primitive(context, desc, std::array{DNNL_ARG_FROM, DNNL_ARG_TO});
}

}  // namespace lockstep::onednn
