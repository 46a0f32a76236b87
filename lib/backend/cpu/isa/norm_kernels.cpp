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

// Fills sum[c] with the sum of make_term(plane offset, first channel)(i, lane) over all elements of channel c.
template <class MakeTerm>
inline __attribute__((always_inline)) void sum_channels(const ChannelLayout& l, double* sum,
                                                        const MakeTerm& make_term) {
  for (int64_t c = 0; c < l.blocks * l.block; ++c) sum[c] = 0;
  for (int64_t image = 0; image < l.images; ++image) {
    for (int64_t b = 0; b < l.blocks; ++b) {
      const auto term = make_term((image * l.blocks + b) * l.spatial * l.block, b * l.block);
      double* const to = sum + b * l.block;
      if (l.block == 16)
        add_plane<16>(l.spatial, to, term);
      else if (l.block == 8)
        add_plane<8>(l.spatial, to, term);
      else if (l.block == 1)
        add_plain_plane(l.spatial, to, term);
      else
        add_any_plane(l.spatial, l.block, to, term);
    }
  }
}

template <class MakeApply>
inline __attribute__((always_inline)) void for_each_element(const ChannelLayout& l, const MakeApply& make_apply) {
  for (int64_t image = 0; image < l.images; ++image) {
    for (int64_t b = 0; b < l.blocks; ++b) {
      const auto apply = make_apply((image * l.blocks + b) * l.spatial * l.block, b * l.block);
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
  }
}

void sums(const ChannelLayout& l, const float* x, double* sum) {
  sum_channels(l, sum, [=](int64_t at, int64_t) {
    return [x = x + at](int64_t i, int64_t) { return static_cast<double>(x[i]); };
  });
}

void centered_squares(const ChannelLayout& l, const float* x, const float* mean, double* squares) {
  sum_channels(l, squares, [=](int64_t at, int64_t channel) {
    return [x = x + at, mean = mean + channel](int64_t i, int64_t c) {
      const double centered = static_cast<double>(x[i]) - static_cast<double>(mean[c]);
      return centered * centered;
    };
  });
}

void normalise(const ChannelLayout& l, const float* x, const float* mean, const float* scale, const float* shift,
               float* y) {
  for_each_element(l, [=](int64_t at, int64_t channel) {
    return [x = x + at, y = y + at, mean = mean + channel, scale = scale + channel, shift = shift + channel](
               int64_t i, int64_t c) { y[i] = (x[i] - mean[c]) * scale[c] + shift[c]; };
  });
}

void gradient_sums(const ChannelLayout& l, const float* x, const float* dy, const float* mean, double* sum_dy,
                   double* sum_dy_x) {
  sum_channels(l, sum_dy, [=](int64_t at, int64_t) {
    return [dy = dy + at](int64_t i, int64_t) { return static_cast<double>(dy[i]); };
  });
  sum_channels(l, sum_dy_x, [=](int64_t at, int64_t channel) {
    return [x = x + at, dy = dy + at, mean = mean + channel](int64_t i, int64_t c) {
      return static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - static_cast<double>(mean[c]));
    };
  });
}

void gradient(const ChannelLayout& l, const float* x, const float* dy, const float* mean, const float* a,
              const float* b, const float* c0, float* dx) {
  for_each_element(l, [=](int64_t at, int64_t channel) {
    return [x = x + at, dy = dy + at, dx = dx + at, mean = mean + channel, a = a + channel, b = b + channel,
            c0 = c0 + channel](int64_t i, int64_t c) { dx[i] = a[c] * dy[i] + b[c] * (x[i] - mean[c]) + c0[c]; };
  });
}

}  // namespace

const NormKernels norm_kernels = {sums, centered_squares, normalise, gradient_sums, gradient};

}  // namespace lockstep::LOCKSTEP_ISA
