// Convolution and linear layer by their definitions, and the helpers that every oracle shares.
#include <cstdint>
#include <random>

#include "support/oracle.h"

namespace lockstep::oracle {

Values widen(std::span<const float> x) { return Values(x.begin(), x.end()); }

std::vector<float> narrow(In x) {
  std::vector<float> out;
  for (double value : x) out.push_back(static_cast<float>(value));
  return out;
}

std::vector<float> random_floats(size_t count, uint32_t seed, float low, float high) {
  std::mt19937 engine(seed);
  std::vector<float> out(count);
  for (float& value : out) value = low + (high - low) * static_cast<float>(engine() >> 8) * 0x1p-24F;
  return out;
}

// Calls visit(output index, input index, weight index) for every product of the convolution.
template <class Visit>
static void for_each_product(const Conv2dGeometry& g, const Visit& visit) {
  const int64_t oh = g.out_height(), ow = g.out_width();
  const int64_t in_group = g.channels / g.groups, out_group = g.out_channels / g.groups;
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.out_channels; ++o)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t x = 0; x < ow; ++x)
          for (int64_t c = 0; c < in_group; ++c)
            for (int64_t ky = 0; ky < g.kernel[0]; ++ky)
              for (int64_t kx = 0; kx < g.kernel[1]; ++kx) {
                const int64_t iy = y * g.stride[0] - g.padding[0] + ky * g.dilation[0];
                const int64_t ix = x * g.stride[1] - g.padding[1] + kx * g.dilation[1];
                if (iy < 0 || iy >= g.height || ix < 0 || ix >= g.width) continue;
                const int64_t channel = o / out_group * in_group + c;
                visit(static_cast<size_t>(((n * g.out_channels + o) * oh + y) * ow + x),
                      static_cast<size_t>(((n * g.channels + channel) * g.height + iy) * g.width + ix),
                      static_cast<size_t>(((o * in_group + c) * g.kernel[0] + ky) * g.kernel[1] + kx));
              }
}

Values conv2d(const Conv2dGeometry& g, In x, In w, In b) {
  const int64_t area = g.out_height() * g.out_width();
  Values y(static_cast<size_t>(g.batch * g.out_channels * area));
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = b.empty() ? 0 : b[i / static_cast<size_t>(area) % static_cast<size_t>(g.out_channels)];
  for_each_product(g, [&](size_t out, size_t in, size_t weight) { y[out] += x[in] * w[weight]; });
  return y;
}

Gradients conv2d_backward(const Conv2dGeometry& g, In x, In w, In dy) {
  const auto area = static_cast<size_t>(g.out_height() * g.out_width());
  Gradients grad{Values(x.size()), Values(w.size()), Values(static_cast<size_t>(g.out_channels))};
  for_each_product(g, [&](size_t out, size_t in, size_t weight) {
    grad.dx[in] += dy[out] * w[weight];
    grad.dweight[weight] += dy[out] * x[in];
  });
  for (size_t i = 0; i < dy.size(); ++i) grad.dbias[i / area % grad.dbias.size()] += dy[i];
  return grad;
}

Values linear(int64_t rows, int64_t in, int64_t out, In x, In w, In b) {
  return conv2d({.batch = rows, .channels = in, .out_channels = out}, x, w, b);  // a 1x1 convolution of 1x1 images
}

Gradients linear_backward(int64_t rows, int64_t in, int64_t out, In x, In w, In dy) {
  return conv2d_backward({.batch = rows, .channels = in, .out_channels = out}, x, w, dy);
}

}  // namespace lockstep::oracle
