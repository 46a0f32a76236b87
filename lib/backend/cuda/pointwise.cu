#include "backend/cuda/pointwise.h"

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
  if (from != DType::f32 && to != DType::f32)
    cuda::refuse("reorder: no conversion from " + std::string(name(from)) + " to " + std::string(name(to)));
  cuda::by_type(from == DType::f32 ? to : from, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const cudaStream_t stream = context.compute().get();
    if (from == DType::f32)
      cuda::launch(stream, n, Convert<float, T>{static_cast<const float*>(x), static_cast<T*>(y)});
    else
      cuda::launch(stream, n, Convert<T, float>{static_cast<const T*>(x), static_cast<float*>(y)});
  });
}

}  // namespace lockstep
