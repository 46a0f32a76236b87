// The optimizers' updates. Whatever is the same for a whole range is a template argument, as in the CPU's kernels.
#include <type_traits>

#include "backend/cuda/device_math.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/optimizer_ops.h"
#include "backend/functors.h"

namespace lockstep {
namespace {

using Math = cuda::DeviceMath;

template <class Functor>
struct Update {
  Functor f;
  float* p;
  const float* g;
  float *a, *b, *c;
  constexpr void operator()(size_t i) const {
    float parameter = p[i], x = 0, y = 0, z = 0;
    if constexpr (Functor::states > 0) x = a[i];
    if constexpr (Functor::states > 1) y = b[i];
    if constexpr (Functor::states > 2) z = c[i];
    f(parameter, g[i], x, y, z);
    p[i] = parameter;
    if constexpr (Functor::states > 0) a[i] = x;
    if constexpr (Functor::states > 1) b[i] = y;
    if constexpr (Functor::states > 2) c[i] = z;
  }
};

template <class Functor>
struct Direction {
  Functor f;
  const float *p, *g;
  float *m, *v, *direction;
  constexpr void operator()(size_t i) const {
    float parameter = p[i], result = 0;
    f(parameter, g[i], m[i], v[i], result);
    direction[i] = result;
  }
};

template <class Functor>
void run(cudaStream_t stream, size_t n, const Functor& f, float* p, const float* g, float* a = nullptr,
         float* b = nullptr, float* c = nullptr) {
  cuda::launch(stream, n, Update<Functor>{f, p, g, a, b, c});
}

// Calls work with std::true_type or std::false_type.
template <class Work>
void with(bool flag, const Work& work) {
  flag ? work(std::true_type{}) : work(std::false_type{});
}

}  // namespace

void CudaOptimizerOps::sgd(const SgdArgs& args, size_t n, float* p, const float* g, float* momentum) const {
  const SgdScalars s = scalars(args);
  with(s.decay, [&](auto decay) {
    constexpr bool d = decltype(decay)::value;
    if (!s.use_momentum) return run(stream(), n, SgdUpdate<Math, d, SgdMode::plain>{s}, p, g);
    if (s.nesterov && s.first_step)
      return run(stream(), n, SgdUpdate<Math, d, SgdMode::first_nesterov>{s}, p, g, momentum);
    if (s.nesterov) return run(stream(), n, SgdUpdate<Math, d, SgdMode::nesterov>{s}, p, g, momentum);
    if (s.first_step) return run(stream(), n, SgdUpdate<Math, d, SgdMode::first>{s}, p, g, momentum);
    run(stream(), n, SgdUpdate<Math, d, SgdMode::momentum>{s}, p, g, momentum);
  });
}

void CudaOptimizerOps::adam(const AdamArgs& args, size_t n, float* p, const float* g, float* m, float* v,
                            float* vmax) const {
  const AdamScalars s = scalars(args);
  with(s.decay, [&](auto decay) {
    with(s.from_gradient, [&](auto from_gradient) {
      constexpr bool d = decltype(decay)::value, f = decltype(from_gradient)::value;
      if (s.amsgrad) return run(stream(), n, AdamUpdate<Math, d, f, true>{s}, p, g, m, v, vmax);
      run(stream(), n, AdamUpdate<Math, d, f, false>{s}, p, g, m, v);
    });
  });
}

void CudaOptimizerOps::lamb_direction(const LambArgs& args, size_t n, const float* p, const float* g, float* m,
                                      float* v, float* direction) const {
  const LambScalars s = scalars(args);
  with(s.from_gradient, [&](auto from_gradient) {
    using Functor = LambDirection<Math, decltype(from_gradient)::value>;
    cuda::launch(stream(), n, Direction<Functor>{Functor{s}, p, g, m, v, direction});
  });
}

void CudaOptimizerOps::adadelta(const AdadeltaArgs& args, size_t n, float* p, const float* g, float* square_avg,
                                float* acc_delta) const {
  const AdadeltaScalars s = scalars(args);
  with(s.decay, [&](auto decay) {
    run(stream(), n, AdadeltaUpdate<Math, decltype(decay)::value>{s}, p, g, square_avg, acc_delta);
  });
}

void CudaOptimizerOps::rmsprop(const RmspropArgs& args, size_t n, float* p, const float* g, float* square_avg,
                               float* grad_avg, float* momentum) const {
  const RmspropScalars s = scalars(args);
  with(s.decay, [&](auto decay) {
    constexpr bool d = decltype(decay)::value;
    if (s.centered && s.use_momentum)
      return run(stream(), n, RmspropUpdate<Math, d, true, true>{s}, p, g, square_avg, grad_avg, momentum);
    if (s.centered) return run(stream(), n, RmspropUpdate<Math, d, true, false>{s}, p, g, square_avg, grad_avg);
    if (s.use_momentum) return run(stream(), n, RmspropUpdate<Math, d, false, true>{s}, p, g, square_avg, momentum);
    run(stream(), n, RmspropUpdate<Math, d, false, false>{s}, p, g, square_avg);
  });
}

void CudaOptimizerOps::adagrad(const AdagradArgs& args, size_t n, float* p, const float* g, float* sum) const {
  const AdagradScalars s = scalars(args);
  with(s.decay, [&](auto decay) { run(stream(), n, AdagradUpdate<Math, decltype(decay)::value>{s}, p, g, sum); });
}

}  // namespace lockstep
