// Each pass walks the planes x[image][block] and hands one plane to a loop: over pixels for plain layouts (block 1),
// over the channels of each pixel for blocked ones. Blocks 8 and 16 are compile-time constants, so their sums stay in
// registers.
#include "backend/cpu/isa/norm_kernels.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// term(i, c): the summand of element i, which belongs to channel c; added to sum[c].
template <int Block, class Term>
inline __attribute__((always_inline)) void add_plane(int64_t spatial, double* sum, const Term& term) {
  double total[Block] = {};
  for (int64_t s = 0; s < spatial; ++s) {
#pragma omp simd
    for (int lane = 0; lane < Block; ++lane) total[lane] += term(s * Block + lane, lane);
  }
  for (int lane = 0; lane < Block; ++lane) sum[lane] += total[lane];
}

template <class Term>
inline __attribute__((always_inline)) void add_plain_plane(int64_t spatial, double* sum, const Term& term) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t s = 0; s < spatial; ++s) total += term(s, 0);
  *sum += total;
}

template <class Term>
inline __attribute__((always_inline)) void add_any_plane(int64_t spatial, int64_t block, double* sum,
                                                         const Term& term) {
  for (int64_t s = 0; s < spatial; ++s) {
#pragma omp simd
    for (int64_t lane = 0; lane < block; ++lane) sum[lane] += term(s * block + lane, lane);
  }
}

// Adds one plane's terms to the sums of its channels, whatever the block.
template <class Term>
inline __attribute__((always_inline)) void add_terms(const ChannelLayout& l, double* sum, const Term& term) {
  if (l.block == 16)
    add_plane<16>(l.spatial, sum, term);
  else if (l.block == 8)
    add_plane<8>(l.spatial, sum, term);
  else if (l.block == 1)
    add_plain_plane(l.spatial, sum, term);
  else
    add_any_plane(l.spatial, l.block, sum, term);
}

// visit(index of the plane's first element, its first channel)
template <class Visit>
inline __attribute__((always_inline)) void for_each_plane(const ChannelLayout& l, const Visit& visit) {
  for (int64_t image = 0; image < l.images; ++image)
    for (int64_t b = 0; b < l.blocks; ++b) visit((image * l.blocks + b) * l.spatial * l.block, b * l.block);
}

void zero(const ChannelLayout& l, double* sum) {
  for (int64_t c = 0; c < l.blocks * l.block; ++c) sum[c] = 0;
}

// apply(i, c): writes element i of the plane, which belongs to its channel c.
template <class Apply>
inline __attribute__((always_inline)) void for_each_element(const ChannelLayout& l, const Apply& apply) {
  if (l.block == 1) {
#pragma omp simd
    for (int64_t s = 0; s < l.spatial; ++s) apply(s, 0);
  } else if (l.block == 16) {
    for (int64_t s = 0; s < l.spatial; ++s) {
#pragma omp simd
      for (int64_t lane = 0; lane < 16; ++lane) apply(s * 16 + lane, lane);
    }
  } else {
    for (int64_t s = 0; s < l.spatial; ++s) {
#pragma omp simd
      for (int64_t lane = 0; lane < l.block; ++lane) apply(s * l.block + lane, lane);
    }
  }
}

double wide(float x) { return static_cast<double>(x); }

void sums(const ChannelLayout& l, const float* x, double* sum) {
  zero(l, sum);
  for_each_plane(l, [=](int64_t at, int64_t channel) {
    add_terms(l, sum + channel, [x = x + at](int64_t i, int64_t) { return wide(x[i]); });
  });
}

void centered_squares(const ChannelLayout& l, const float* x, const float* mean, double* squares) {
  zero(l, squares);
  for_each_plane(l, [=](int64_t at, int64_t channel) {
    add_terms(l, squares + channel, [x = x + at, m = mean + channel](int64_t i, int64_t c) {
      const double centered = wide(x[i]) - wide(m[c]);
      return centered * centered;
    });
  });
}

void normalise(const ChannelLayout& l, const float* x, const float* mean, const float* scale, const float* shift,
               float* y) {
  for_each_plane(l, [=](int64_t at, int64_t channel) {
    const float *px = x + at, *m = mean + channel, *factor = scale + channel, *offset = shift + channel;
    float* py = y + at;
    for_each_element(l, [=](int64_t i, int64_t c) { py[i] = (px[i] - m[c]) * factor[c] + offset[c]; });
  });
}

// Both sums of a plane while it is in the cache.
void gradient_sums(const ChannelLayout& l, const float* x, const float* dy, const float* mean, double* sum_dy,
                   double* sum_dy_x) {
  zero(l, sum_dy);
  zero(l, sum_dy_x);
  for_each_plane(l, [=](int64_t at, int64_t channel) {
    const float *px = x + at, *pdy = dy + at, *m = mean + channel;
    add_terms(l, sum_dy + channel, [=](int64_t i, int64_t) { return wide(pdy[i]); });
    add_terms(l, sum_dy_x + channel, [=](int64_t i, int64_t c) { return wide(pdy[i]) * (wide(px[i]) - wide(m[c])); });
  });
}

void gradient(const ChannelLayout& l, const float* x, const float* dy, const float* mean, const float* a,
              const float* b, const float* c0, float* dx) {
  for_each_plane(l, [=](int64_t at, int64_t channel) {
    const float *px = x + at, *pdy = dy + at, *m = mean + channel, *pa = a + channel, *pb = b + channel,
                *pc = c0 + channel;
    float* pdx = dx + at;
    for_each_element(l, [=](int64_t i, int64_t c) { pdx[i] = pa[c] * pdy[i] + pb[c] * (px[i] - m[c]) + pc[c]; });
  });
}

}  // namespace

const NormKernels norm_kernels = {sums, centered_squares, normalise, gradient_sums, gradient};

}  // namespace lockstep::LOCKSTEP_ISA
