// What oneDNN does in a steady step, by its own log: no copies of weights or activations beside the real work.
#include <dnnl.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "backend/affine_runner.h"
#include "backend/cpu/cpu_plans.h"
#include "core/buffer.h"
#include "core/cpu_features.h"

using namespace lockstep;

namespace {

// Everything that `work` makes the process print to standard output.
template <class Work>
std::string printed_by(const Work& work) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stdout);
  const int saved = ::dup(STDOUT_FILENO);
  ::dup2(::fileno(file), STDOUT_FILENO);
  work();
  std::fflush(stdout);
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  std::string text;
  std::array<char, 4096> piece{};
  std::rewind(file);
  for (size_t n = 0; (n = std::fread(piece.data(), 1, piece.size(), file)) > 0;) text.append(piece.data(), n);
  std::fclose(file);
  return text;
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

struct Passes {
  // oneDNN's log of each, in the second step; copies: of the weights
  std::string copies, forward, backward_data, backward_weights;
};

template <class AffinePlan>
Passes log_second_step(AffinePlan& plan, const TensorDesc& input, size_t weights, size_t outputs, bool input_gradient) {
  if (plan.weight_format()) weights = plan.weight_format()->stored_count();
  const Buffer x = Buffer::host(input.bytes()), dx = Buffer::host(input.bytes());
  const Buffer y = Buffer::host(plan.output().bytes()), dy = Buffer::host(plan.output().bytes());
  const Buffer w = Buffer::host(weights * sizeof(float)), dw = Buffer::host(weights * sizeof(float));
  const Buffer b = Buffer::host(outputs * sizeof(float)), db = Buffer::host(outputs * sizeof(float));
  const Buffer workspace = Buffer::host(plan.workspace_bytes());
  const auto f = [](const Buffer& buffer) { return buffer.as<float>().data(); };
  Passes log;
  for (int step = 0; step < 2; ++step) {
    dnnl_set_verbose(step);
    log.copies = printed_by([&] { plan.take_weights(f(w), workspace.data()); });
    log.forward = printed_by([&] { plan.forward(f(x), f(w), f(b), f(y), workspace.data()); });
    log.backward_weights =
        printed_by([&] { plan.backward_weights(f(x), f(dy), f(dw), f(db), false, workspace.data()); });
    if (input_gradient)
      log.backward_data = printed_by([&] { plan.backward_data(f(dy), f(w), f(dx), workspace.data()); });
    dnnl_set_verbose(0);
  }
  return log;
}

Passes log_conv(int64_t in, int64_t out, int64_t size, int64_t block, bool input_gradient, bool winograd,
                DType type = DType::f32, int64_t batch = 64) {
  const Conv2dSpec spec{.input = {.shape = Shape{batch, in, size, size}, .channel_block = block, .dtype = type},
                        .out_channels = out,
                        .kernel = {3, 3},
                        .activation = Activation::relu,
                        .input_gradient = input_gradient,
                        .weight_format = nullptr};
  auto plan =
      make_cpu_conv2d(spec, {.winograd = winograd, .bf16 = block == in ? Bf16Products::amx : Bf16Products::avx512});
  return log_second_step(*plan, spec.input, static_cast<size_t>(out * in * 9), static_cast<size_t>(out),
                         input_gradient);
}

bool oneDNN_uses_avx512() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
}

}  // namespace

TEST_CASE("a steady convolution step copies nothing but the weights of a direct backward_data") {
  if (!oneDNN_uses_avx512()) {
    MESSAGE("skipped: written for the layouts of AVX-512");
    return;
  }
  const Passes first = log_conv(1, 32, 28, 1, false, true);
  CHECK_EQ(count(first.forward, ",convolution,"), 1);
  CHECK_EQ(count(first.backward_weights, ",convolution,"), 1);
  CHECK_EQ(count(first.copies + first.forward + first.backward_weights, ",reorder,"), 0);

  const Passes direct = log_conv(32, 64, 26, 16, true, false);
  CHECK_EQ(count(direct.forward + direct.backward_data + direct.backward_weights, ",reorder,"), 0);
  CHECK_EQ(count(direct.backward_data, ",convolution,"), 1);
  CHECK_LE(count(direct.copies, ",reorder,"), 1);

  const Passes winograd = log_conv(32, 64, 26, 16, true, true);
  const std::string all = winograd.copies + winograd.forward + winograd.backward_data + winograd.backward_weights;
  CHECK_EQ(count(all, ",convolution,"), 3);
  CHECK_EQ(count(all, "ref:"), 0);
  if (dnnl_version()->major == 2) {  // version 3 has no Winograd on this architecture
    CHECK_EQ(count(all, "jit_wino"), 3);
    CHECK_EQ(count(all, ",reorder,"), 0);
  }
}

TEST_CASE("a steady convolution step in bf16 copies nothing but the weights for each pass that reads them") {
  if (!oneDNN_uses_avx512()) {
    MESSAGE("skipped: oneDNN's bf16 needs AVX-512");
    return;
  }
  for (const int64_t block : {16, 32}) {  // 32: channels last, as for AMX
    const Passes bf16 = log_conv(32, 64, 12, block, true, true, DType::bf16, 2);
    CHECK_EQ(count(bf16.copies, ",reorder,"), 2);
    const std::string all = bf16.forward + bf16.backward_data + bf16.backward_weights;
    CHECK_EQ(count(all, ",convolution,"), 3);
    CHECK_EQ(count(all, "src_bf16"), 3);
    CHECK_EQ(count(all, ",reorder,"), 0);
  }
}

TEST_CASE("a steady linear step copies nothing") {
  for (const int64_t block : {1, 16}) {
    const LinearSpec spec{.input = {.shape = Shape{64, 64, 12, 12}, .channel_block = block, .dtype = DType::f32},
                          .out_features = 128,
                          .activation = Activation::relu,
                          .weight_format = nullptr};
    auto plan = make_cpu_linear(spec, {});
    const Passes log = log_second_step(*plan, spec.input, 9216 * 128, 128, true);
    const std::string all = log.copies + log.forward + log.backward_data + log.backward_weights;
    CHECK_EQ(count(all, ",inner_product,"), 3);
    CHECK_EQ(count(all, ",reorder,"), 0);
    CHECK_EQ(count(all, "ref:"), 0);
  }
}
