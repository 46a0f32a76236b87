#include "backend/cuda/pointwise.h"

#include <algorithm>
#include <type_traits>

#include "backend/cuda/by_type.h"
#include "backend/cuda/launch.cuh"

namespace lockstep {
namespace {

template <class T>
struct Fill {
  T *x, value;
  constexpr void operator()(size_t i) const { x[i] = value; }
};

template <class T>
struct Add {
  const T *a, *b;
  T* y;
  constexpr void operator()(size_t i) const { narrow(widen(a[i]) + widen(b[i]), y[i]); }
};

template <class T>
struct ReluMask {
  const T *y, *dy;
  T* dx;
  constexpr void operator()(size_t i) const { dx[i] = widen(y[i]) > 0 ? dy[i] : T{}; }
};

template <class From, class To>
struct Convert {
  const From* x;
  To* y;
  constexpr void operator()(size_t i) const { narrow(widen(x[i]), y[i]); }
};

// Channel c of pixel s lies at (c / block * spatial + s) * block + c % block.
template <class From, class To>
struct Reorder {
  size_t channels, spatial, source, target;
  const From* x;
  To* y;
  constexpr void operator()(size_t i) const {
    const size_t sample = channels * spatial, in_sample = i % sample, pixel = in_sample / target;
    const size_t c = pixel / spatial * target + in_sample % target, s = pixel % spatial;
    narrow(widen(x[i - in_sample + (c / source * spatial + s) * source + c % source]), y[i]);
  }
};

void check_block(const TensorDesc& desc) {
  const int64_t block = desc.channel_block;
  if (block < 1 || (block > 1 && (desc.shape.rank() < 2 || desc.shape[1] % block != 0)))
    cuda::refuse("reorder: channel block " + std::to_string(block) + " does not divide the channels of " +
                 desc.shape.str());
}

// Calls work with null pointers to the two element types, of which one is float unless they are the same.
template <class Work>
void by_types(DType from, DType to, const Work& work) {
  if (from != to && from != DType::f32 && to != DType::f32)
    cuda::refuse("reorder: no conversion from " + std::string(name(from)) + " to " + std::string(name(to)));
  cuda::by_type(from == DType::f32 ? to : from, [&](auto* half) {
    using T = std::remove_pointer_t<decltype(half)>;
    if (from == to) return work(half, half);
    if (from == DType::f32) return work(static_cast<float*>(nullptr), static_cast<T*>(nullptr));
    work(static_cast<T*>(nullptr), static_cast<float*>(nullptr));
  });
}

}  // namespace

void cuda_copy(const cuda::Context& context, DType type, size_t n, const void* from, void* to) {
  if (n == 0 || from == to) return;
  cuda::check(cudaMemcpyAsync(to, from, n * size_of(type), cudaMemcpyDeviceToDevice, context.compute().get()),
              "cudaMemcpyAsync");
}

void cuda_fill(const cuda::Context& context, size_t n, float value, float* x) {
  cuda::launch(context.compute().get(), n, Fill<float>{x, value});
}

void cuda_add(const cuda::Context& context, DType type, size_t n, const void* a, const void* b, void* y) {
  cuda::by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    cuda::launch(context.compute().get(), n,
                 Add<T>{static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y)});
  });
}

void cuda_relu_mask(const cuda::Context& context, DType type, size_t n, const void* y, const void* dy, void* dx) {
  cuda::by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    cuda::launch(context.compute().get(), n,
                 ReluMask<T>{static_cast<const T*>(y), static_cast<const T*>(dy), static_cast<T*>(dx)});
  });
}

void cuda_convert(const cuda::Context& context, size_t n, DType from, const void* x, DType to, void* y) {
  if (from == to) return cuda_copy(context, from, n, x, y);
  by_types(from, to, [&](auto* in, auto* out) {
    using From = std::remove_pointer_t<decltype(in)>;
    using To = std::remove_pointer_t<decltype(out)>;
    cuda::launch(context.compute().get(), n, Convert<From, To>{static_cast<const From*>(x), static_cast<To*>(y)});
  });
}

void cuda_reorder(const cuda::Context& context, const TensorDesc& from, const void* x, const TensorDesc& to, void* y) {
  if (from.shape != to.shape)
    cuda::refuse("reorder: expected two tensors of one shape, found " + from.shape.str() + " and " + to.shape.str());
  check_block(from);
  check_block(to);
  const auto count = static_cast<size_t>(from.shape.numel());
  if (from.channel_block == to.channel_block) return cuda_convert(context, count, from.dtype, x, to.dtype, y);
  const auto channels = static_cast<size_t>(from.shape[1]);
  const size_t spatial = count / std::max<size_t>(1, static_cast<size_t>(from.shape[0]) * channels);
  by_types(from.dtype, to.dtype, [&](auto* in, auto* out) {
    using From = std::remove_pointer_t<decltype(in)>;
    using To = std::remove_pointer_t<decltype(out)>;
    cuda::launch(
        context.compute().get(), count,
        Reorder<From, To>{channels, spatial, static_cast<size_t>(from.channel_block),
                          static_cast<size_t>(to.channel_block), static_cast<const From*>(x), static_cast<To*>(y)});
  });
}

}  // namespace lockstep
