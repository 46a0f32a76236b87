// The simulated cuDNN's arithmetic: what the descriptors say, in plain loops. fp32 numbers are rounded as TF32 has them
// unless the descriptor forbids it, so that a program that forgets to is found out.
#include <algorithm>
#include <cstring>

#include "core/half.h"
#include "sim/runtime/cudnn.h"
#include "sim/runtime/tf32.h"

namespace lockstep::sim {
namespace {

using Floats = std::vector<float>;

size_t size(int n) { return static_cast<size_t>(n); }
size_t element(cudnnDataType_t type) { return type == CUDNN_DATA_FLOAT ? 4 : 2; }

float read(cudnnDataType_t type, const void* from, size_t i) {
  if (type == CUDNN_DATA_FLOAT) return static_cast<const float*>(from)[i];
  if (type == CUDNN_DATA_BFLOAT16) return widen(static_cast<const Bf16*>(from)[i]);
  return widen(static_cast<const F16*>(from)[i]);
}

void write(cudnnDataType_t type, float value, void* to, size_t i) {
  if (type == CUDNN_DATA_FLOAT) static_cast<float*>(to)[i] = value;
  if (type == CUDNN_DATA_BFLOAT16) narrow(value, static_cast<Bf16*>(to)[i]);
  if (type == CUDNN_DATA_HALF) narrow(value, static_cast<F16*>(to)[i]);
}

// An array [a][b][h][w] of either format. visit(place in memory, place with b last)
template <class Visit>
void for_each(cudnnTensorFormat_t format, int a, int b, int h, int w, const Visit& visit) {
  const size_t channels = size(b), pixels = size(h) * size(w);
  for (size_t i = 0; i < size(a); ++i)
    for (size_t p = 0; p < pixels; ++p)
      for (size_t c = 0; c < channels; ++c) {
        const size_t last = (i * pixels + p) * channels + c;
        visit(format == CUDNN_TENSOR_NHWC ? last : (i * channels + c) * pixels + p, last);
      }
}
template <class Visit>
void for_each(const cudnnTensorStruct& t, const Visit& visit) {
  for_each(t.format, t.n, t.c, t.h, t.w, visit);
}
template <class Visit>
void for_each(const cudnnFilterStruct& f, const Visit& visit) {
  for_each(f.format, f.k, f.c, f.h, f.w, visit);
}

template <class Array>
Floats gather(const Array& array, cudnnMathType_t math, const void* from, size_t count) {
  Floats values(count);
  const bool rounded = array.type == CUDNN_DATA_FLOAT && math != CUDNN_FMA_MATH;
  for_each(array, [&](size_t at, size_t last) {
    values[last] = read(array.type, from, at);
    if (rounded) values[last] = tf32(values[last]);
  });
  return values;
}

template <class Array>
void scatter(const Array& array, float alpha, const Floats& values, float beta, void* to) {
  for_each(array, [&](size_t at, size_t last) {
    const float old = beta == 0 ? 0 : beta * read(array.type, to, at);  // with beta 0 it may be anything
    write(array.type, alpha * values[last] + old, to, at);
  });
}

// visit(place of the output pixel's channels in y, of the input pixel's in x, the tap) over the taps inside the input
template <class Visit>
void over_taps(const Convolution& v, size_t output, const Visit& visit) {
  const size_t width = size(v.y.w), height = size(v.y.h);
  const int q = static_cast<int>(output % width), p = static_cast<int>(output / width % height);
  const size_t n = output / width / height;
  for (int r = 0; r < v.w.h; ++r) {
    const int i = p * v.c.stride[0] - v.c.padding[0] + r * v.c.dilation[0];
    if (i < 0 || i >= v.x.h) continue;
    for (int s = 0; s < v.w.w; ++s) {
      const int j = q * v.c.stride[1] - v.c.padding[1] + s * v.c.dilation[1];
      if (j < 0 || j >= v.x.w) continue;
      const size_t input = (n * size(v.x.h) + size(i)) * size(v.x.w) + size(j);
      visit(output * size(v.y.c), input * size(v.x.c), size(r * v.w.w + s));
    }
  }
}

size_t count(const cudnnTensorStruct& t) { return size(t.n) * size(t.c) * size(t.h) * size(t.w); }
size_t count(const cudnnFilterStruct& f) { return size(f.k) * size(f.c) * size(f.h) * size(f.w); }

// Places of filter k's weights at a tap, and of its group's channels in an input pixel.
size_t weights_at(const cudnnFilterStruct& w, size_t k, size_t tap) {
  return (k * size(w.h) * size(w.w) + tap) * size(w.c);
}
size_t group_at(const Convolution& v, size_t k) { return k / (size(v.w.k) / size(v.c.groups)) * size(v.w.c); }

}  // namespace

size_t Convolution::x_bytes() const { return count(x) * element(x.type); }
size_t Convolution::w_bytes() const { return count(w) * element(w.type); }
size_t Convolution::y_bytes() const { return count(y) * element(y.type); }

void Convolution::forward(float alpha, const void* from_x, const void* from_w, float beta, const Epilogue& epilogue,
                          void* to) const {
  const Floats in = gather(x, c.math, from_x, count(x)), weights = gather(w, c.math, from_w, count(w));
  Floats out(count(y));
  const size_t channels = size(w.c), outputs = count(y) / size(y.c);
  for (size_t output = 0; output < outputs; ++output)
    over_taps(*this, output, [&](size_t at, size_t input, size_t tap) {
      for (size_t k = 0; k < size(w.k); ++k) {
        const float *a = in.data() + input + group_at(*this, k), *b = weights.data() + weights_at(w, k, tap);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < channels; ++i) sum += a[i] * b[i];
        out[at + k] += sum;
      }
    });
  if (epilogue.bias == nullptr && !epilogue.relu) return scatter(y, alpha, out, beta, to);
  for_each(y, [&](size_t at, size_t last) {  // rounded to y's type once, at the end
    float value = alpha * out[last];
    if (epilogue.bias != nullptr) value += read(y.type, epilogue.bias, last % size(y.c));
    write(y.type, epilogue.relu && value <= 0 ? 0 : value, to, at);
  });
}

void Convolution::data(float alpha, const void* from_w, const void* from_dy, float beta, void* to,
                       const std::vector<size_t>& order) const {
  const Floats weights = gather(w, c.math, from_w, count(w)), dy = gather(y, c.math, from_dy, count(y));
  Floats dx(count(x));
  const size_t channels = size(w.c);
  for (const size_t output : order)
    over_taps(*this, output, [&](size_t at, size_t input, size_t tap) {
      for (size_t k = 0; k < size(w.k); ++k) {
        const float factor = dy[at + k], *a = weights.data() + weights_at(w, k, tap);
        float* sum = dx.data() + input + group_at(*this, k);
        for (size_t i = 0; i < channels; ++i) sum[i] += factor * a[i];
      }
    });
  scatter(x, alpha, dx, beta, to);
}

void Convolution::filter(float alpha, const void* from_x, const void* from_dy, float beta, void* to,
                         const std::vector<size_t>& order) const {
  const Floats in = gather(x, c.math, from_x, count(x)), dy = gather(y, c.math, from_dy, count(y));
  Floats dw(count(w));
  const size_t channels = size(w.c);
  for (const size_t output : order)
    over_taps(*this, output, [&](size_t at, size_t input, size_t tap) {
      for (size_t k = 0; k < size(w.k); ++k) {
        const float factor = dy[at + k], *a = in.data() + input + group_at(*this, k);
        float* sum = dw.data() + weights_at(w, k, tap);
        for (size_t i = 0; i < channels; ++i) sum[i] += factor * a[i];
      }
    });
  scatter(w, alpha, dw, beta, to);
}

cudnnStatus_t describe(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                       cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y, Convolution& v) {
  if (x == nullptr || w == nullptr || c == nullptr || y == nullptr || !x->set || !w->set || !c->set || !y->set)
    return wrong(function, "a descriptor that is missing or was never set");
  v = {*x, *y, *w, *c};
  if (x->type != w->type || x->type != y->type) return wrong(function, "arrays of different types");
  if (c->compute != CUDNN_DATA_FLOAT || c->mode != CUDNN_CROSS_CORRELATION)
    return wrong(function, "only cross-correlations in fp32 are simulated", CUDNN_STATUS_NOT_SUPPORTED);
  if (x->format != w->format || x->format != y->format)
    return wrong(function, "arrays of different formats", CUDNN_STATUS_NOT_SUPPORTED);
  if (x->c != w->c * c->groups || w->k % c->groups != 0) return wrong(function, "channels and groups do not fit");
  const auto out = [&](int in, int kernel, size_t axis) {
    return (in + 2 * c->padding[axis] - c->dilation[axis] * (kernel - 1) - 1) / c->stride[axis] + 1;
  };
  if (y->n != x->n || y->c != w->k || y->h != out(x->h, w->h, 0) || y->w != out(x->w, w->w, 1))
    return wrong(function, "an output of another shape");
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace lockstep::sim
