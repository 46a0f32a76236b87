#include "backend/cuda/bias_sums.h"

#include <type_traits>

#include "backend/cuda/by_type.h"
#include "backend/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

template <class T>
struct Column {
  size_t columns;
  const T* dy;
  static constexpr double identity() { return 0; }
  static constexpr double combine(double a, double b) { return a + b; }
  constexpr double operator()(size_t row, size_t c) const { return static_cast<double>(widen(dy[row * columns + c])); }
};

struct Total {
  bool accumulate;
  float* db;
  constexpr void operator()(size_t c, double sum) const {
    db[c] = (accumulate ? db[c] : 0.0F) + static_cast<float>(sum);
  }
};

}  // namespace

void bias_sums(const Context& context, DType type, size_t rows, size_t columns, const void* dy, bool accumulate,
               float* db, void* parts) {
  by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    launch_columns(context.compute().get(), column_shape(rows, columns, false),
                   Column<T>{columns, static_cast<const T*>(dy)}, static_cast<double*>(parts), Total{accumulate, db});
  });
}

}  // namespace lockstep::cuda
