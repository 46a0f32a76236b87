#include "backend/cuda/bias_sums.h"

#include <type_traits>

#include "backend/cuda/by_type.h"
#include "backend/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

template <class T>
struct Parts {
  size_t rows, columns;
  const T* dy;
  double* parts;
  constexpr void operator()(size_t i) const {
    double sum = 0;
    for (size_t row = i / columns; row < rows; row += bias_sum_parts)
      sum += static_cast<double>(widen(dy[row * columns + i % columns]));
    parts[i] = sum;
  }
};

struct Total {
  size_t columns;
  const double* parts;
  bool accumulate;
  float* db;
  constexpr void operator()(size_t c) const {
    double sum = 0;
    for (size_t part = 0; part < bias_sum_parts; ++part) sum += parts[part * columns + c];
    db[c] = accumulate ? db[c] + static_cast<float>(sum) : static_cast<float>(sum);
  }
};

}  // namespace

void bias_sums(const Context& context, DType type, size_t rows, size_t columns, const void* dy, bool accumulate,
               float* db, void* parts) {
  const cudaStream_t stream = context.compute().get();
  auto* sums = static_cast<double*>(parts);
  by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    launch(stream, bias_sum_parts * columns, Parts<T>{rows, columns, static_cast<const T*>(dy), sums});
  });
  launch(stream, columns, Total{columns, sums, accumulate, db});
}

}  // namespace lockstep::cuda
