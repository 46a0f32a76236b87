// The kernels of norms that stay on the device (slice_norms.cu). Every slice is cut into chunks, whose sums are columns
// of one launch; then the chunks of a slice are added.
#pragma once

#include <cmath>
#include <cstddef>

#include "backend/clip_functors.h"
#include "backend/cuda/device_math.h"
#include "backend/functors.h"
#include "backend/trust_ratio.h"

namespace lockstep::cuda {

constexpr size_t chunk_length = 8192;

struct Chunk {
  size_t offset, count;
};
struct DeviceSlice {
  size_t first_chunk, chunks;
  double weight_decay;
  bool adapt;
};

// What is summed of an element, and what its sum becomes.
struct Squares {
  static constexpr double combine(double a, double b) { return a + b; }
  constexpr double operator()(double x) const { return x * x; }
  constexpr double root(double sum) const { return ::sqrt(sum); }
};
struct Magnitudes : Squares {
  constexpr double operator()(double x) const { return ::fabs(x); }
  constexpr double root(double sum) const { return sum; }
};
struct Powers : Squares {
  double power;
  explicit Powers(double exponent) : power(exponent) {}
  constexpr double operator()(double x) const { return ::pow(::fabs(x), power); }
  constexpr double root(double sum) const { return ::pow(sum, 1 / power); }
};
struct Largest : Magnitudes {
  static constexpr double combine(double a, double b) { return a > b || a != a ? a : b; }  // a NaN stays
};

// Column c is chunk c % chunks of array c / chunks.
template <class Kind>
struct OfChunk {
  Kind kind;
  size_t chunks;
  const Chunk* chunk;
  const float *first, *second;
  static constexpr double identity() { return 0; }
  static constexpr double combine(double a, double b) { return Kind::combine(a, b); }
  constexpr double operator()(size_t row, size_t column) const {
    const Chunk& mine = chunk[column % chunks];
    if (row >= mine.count) return 0;
    return kind((column < chunks ? first : second)[mine.offset + row]);
  }
};

struct Store {
  double* to;
  constexpr void operator()(size_t column, double sum) const { to[column] = sum; }
};

// Column c is slice c % slices of array c / slices.
template <class Kind>
struct OfSlice {
  size_t slices, chunks;
  const DeviceSlice* slice;
  const double* sums;
  static constexpr double identity() { return 0; }
  static constexpr double combine(double a, double b) { return Kind::combine(a, b); }
  constexpr double operator()(size_t row, size_t column) const {
    const DeviceSlice& mine = slice[column % slices];
    return row < mine.chunks ? sums[column / slices * chunks + mine.first_chunk + row] : 0;
  }
};

template <class Kind>
struct StoreRoot {
  Kind kind;
  double* to;
  constexpr void operator()(size_t column, double sum) const { to[column] = kind.root(sum); }
};

struct Clip {
  float total, factor;
};

// By one thread: parameters are few, and the order is the CPU's.
struct TotalNorm {
  size_t slices;
  const double* norms;
  double type, max_norm;
  Clip* clip;
  constexpr void operator()(size_t) const {
    NormSum sum{type};
    for (size_t i = 0; i < slices; ++i) sum.add(static_cast<float>(norms[i]));
    clip->total = sum.root();
    clip->factor = clip_factor(clip->total, max_norm);
  }
};

struct ScaleChunk {
  const Chunk* chunk;
  const Clip* clip;
  float* x;
  constexpr void operator()(size_t row, size_t column) const {
    if (column < chunk[row].count) x[chunk[row].offset + column] *= clip->factor;
  }
};

struct LarsRatio {
  size_t slices;
  const DeviceSlice* slice;
  const double* norms;
  double coefficient, eps;
  double* ratios;
  constexpr void operator()(size_t i) const {
    ratios[i] =
        slice[i].adapt ? lars_trust_ratio(coefficient, norms[i], norms[slices + i], slice[i].weight_decay, eps) : 1;
  }
};

struct LambRatio {
  size_t slices;
  const DeviceSlice* slice;
  const double* norms;
  double* ratios;
  constexpr void operator()(size_t i) const {
    ratios[i] = slice[i].adapt ? lamb_trust_ratio(norms[i], norms[slices + i]) : 1;
  }
};

// As the host's scalars() would have cast them, had it known the ratio.
template <class Functor>
struct SgdByRatio {
  SgdScalars s;
  double sign, weight_decay;
  const double* ratio;
  float* p;
  const float* g;
  float* momentum;
  constexpr void operator()(size_t i) const {
    Functor update{s};
    update.s.sign = static_cast<float>(sign * *ratio);
    update.s.weight_decay = static_cast<float>(*ratio * weight_decay);
    float parameter = p[i], buffer = 0, unused = 0;
    if constexpr (Functor::states > 0) buffer = momentum[i];
    update(parameter, g[i], buffer, unused, unused);
    p[i] = parameter;
    if constexpr (Functor::states > 0) momentum[i] = buffer;
  }
};

struct StepByRatio {
  double lr;
  const double* ratio;
  float* p;
  const float* update;
  constexpr void operator()(size_t i) const {
    p[i] = DeviceMath::fma(update[i], static_cast<float>(-(lr * *ratio)), p[i]);
  }
};

}  // namespace lockstep::cuda
