// The optimizers' updates. What is the same for a whole run is a template argument, as in the CPU's kernels; what may
// change from step to step is looked up in the numbers, which a recorded step finds on the device.
#include <type_traits>

#include "backend/cuda/device_math.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/optimizer_ops.h"
#include "backend/functors.h"

namespace lockstep {
namespace {

using Math = cuda::DeviceMath;

// An optimizer's numbers: given with the launch, or where a recorded step finds them.
template <class Scalars>
struct Numbers {
  Scalars own;
  const Scalars* recorded;
  constexpr const Scalars& get() const { return recorded != nullptr ? *recorded : own; }
};

template <class Functor>
constexpr void update(const Functor& f, size_t i, float* p, const float* g, float* a, float* b, float* c) {
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

// Rule::apply picks the functor by the numbers and updates element i with it.
template <class Rule>
struct Update {
  Numbers<typename Rule::Scalars> numbers;
  float* p;
  const float* g;
  float *a, *b, *c;
  constexpr void operator()(size_t i) const { Rule::apply(numbers.get(), i, p, g, a, b, c); }
};

template <class Functor, class Numbers>
struct Always {
  using Scalars = Numbers;
  static constexpr void apply(const Scalars& s, size_t i, float* p, const float* g, float* a, float* b, float* c) {
    update(Functor{s}, i, p, g, a, b, c);
  }
};

// The first step and a schedule of the momentum change the mode.
template <bool decay>
struct SgdRule {
  using Scalars = SgdScalars;
  template <SgdMode mode>
  using In = SgdUpdate<Math, decay, mode>;
  static constexpr void apply(const Scalars& s, size_t i, float* p, const float* g, float* a, float* b, float* c) {
    if (!s.use_momentum) {
      update(In<SgdMode::plain>{s}, i, p, g, a, b, c);
    } else if (s.nesterov && s.first_step) {
      update(In<SgdMode::first_nesterov>{s}, i, p, g, a, b, c);
    } else if (s.nesterov) {
      update(In<SgdMode::nesterov>{s}, i, p, g, a, b, c);
    } else if (s.first_step) {
      update(In<SgdMode::first>{s}, i, p, g, a, b, c);
    } else {
      update(In<SgdMode::momentum>{s}, i, p, g, a, b, c);
    }
  }
};

// beta1, which a schedule may move, decides from which end the first moment is interpolated.
template <bool decay, bool amsgrad>
struct AdamRule {
  using Scalars = AdamScalars;
  static constexpr void apply(const Scalars& s, size_t i, float* p, const float* g, float* a, float* b, float* c) {
    if (s.from_gradient) {
      update(AdamUpdate<Math, decay, true, amsgrad>{s}, i, p, g, a, b, c);
    } else {
      update(AdamUpdate<Math, decay, false, amsgrad>{s}, i, p, g, a, b, c);
    }
  }
};

template <bool decay, bool centered>
struct RmspropRule {
  using Scalars = RmspropScalars;
  static constexpr void apply(const Scalars& s, size_t i, float* p, const float* g, float* a, float* b, float* c) {
    if (s.use_momentum) {
      update(RmspropUpdate<Math, decay, centered, true>{s}, i, p, g, a, b, c);
    } else {
      update(RmspropUpdate<Math, decay, centered, false>{s}, i, p, g, a, b, c);
    }
  }
};

struct Direction {
  Numbers<LambScalars> numbers;
  const float *p, *g;
  float *m, *v, *direction;
  template <bool from_gradient>
  constexpr void at(size_t i, const LambScalars& s) const {
    float parameter = p[i], result = 0;
    LambDirection<Math, from_gradient>{s}(parameter, g[i], m[i], v[i], result);
    direction[i] = result;
  }
  constexpr void operator()(size_t i) const {
    const LambScalars& s = numbers.get();
    s.from_gradient ? at<true>(i, s) : at<false>(i, s);
  }
};

// Calls work with std::true_type or std::false_type.
template <class Work>
void with(bool flag, const Work& work) {
  flag ? work(std::true_type{}) : work(std::false_type{});
}

}  // namespace

template <class Rule>
void CudaOptimizerOps::run(const typename Rule::Scalars& s, size_t n, float* p, const float* g, float* a, float* b,
                           float* c) const {
  const Numbers<typename Rule::Scalars> numbers{s, context_.values().place(s)};
  if (queues()) cuda::launch(stream(), n, Update<Rule>{numbers, p, g, a, b, c});
}

void CudaOptimizerOps::sgd(const SgdArgs& args, size_t n, float* p, const float* g, float* momentum) const {
  const SgdScalars s = scalars(args);
  with(s.decay, [&](auto decay) { run<SgdRule<decltype(decay)::value>>(s, n, p, g, momentum); });
}

void CudaOptimizerOps::adam(const AdamArgs& args, size_t n, float* p, const float* g, float* m, float* v,
                            float* vmax) const {
  const AdamScalars s = scalars(args);
  with(s.decay, [&](auto decay) {
    with(s.amsgrad, [&](auto amsgrad) {
      run<AdamRule<decltype(decay)::value, decltype(amsgrad)::value>>(s, n, p, g, m, v, vmax);
    });
  });
}

void CudaOptimizerOps::lamb_direction(const LambArgs& args, size_t n, const float* p, const float* g, float* m,
                                      float* v, float* direction) const {
  const LambScalars s = scalars(args);
  const Numbers<LambScalars> numbers{s, context_.values().place(s)};
  if (queues()) cuda::launch(stream(), n, Direction{numbers, p, g, m, v, direction});
}

void CudaOptimizerOps::adadelta(const AdadeltaArgs& args, size_t n, float* p, const float* g, float* square_avg,
                                float* acc_delta) const {
  const AdadeltaScalars s = scalars(args);
  with(s.decay, [&](auto decay) {
    run<Always<AdadeltaUpdate<Math, decltype(decay)::value>, AdadeltaScalars>>(s, n, p, g, square_avg, acc_delta);
  });
}

void CudaOptimizerOps::rmsprop(const RmspropArgs& args, size_t n, float* p, const float* g, float* square_avg,
                               float* grad_avg, float* momentum) const {
  const RmspropScalars s = scalars(args);
  with(s.decay, [&](auto decay) {
    constexpr bool d = decltype(decay)::value;
    if (s.centered) return run<RmspropRule<d, true>>(s, n, p, g, square_avg, grad_avg, momentum);
    run<RmspropRule<d, false>>(s, n, p, g, square_avg, momentum);
  });
}

void CudaOptimizerOps::adagrad(const AdagradArgs& args, size_t n, float* p, const float* g, float* sum) const {
  const AdagradScalars s = scalars(args);
  with(s.decay,
       [&](auto decay) { run<Always<AdagradUpdate<Math, decltype(decay)::value>, AdagradScalars>>(s, n, p, g, sum); });
}

}  // namespace lockstep
