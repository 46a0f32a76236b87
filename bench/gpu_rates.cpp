// bench_gpu: what our plans make of a GPU beside what it can do: the three products of a linear layer in bf16 beside
// cuBLASLt's own, optimizer updates beside a copy. Prints one JSON line. bench/gpu_check makes a table of it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backend/factory.h"
#include "bench/library_product.h"
#include "core/error.h"

namespace lockstep::bench {
namespace {

struct Options {
  int64_t batch = 4096, features = 4096, floats = 1 << 26;
  int repeats = 20;
};

class Rates {
 public:
  Rates(const Options& options, Backend& backend) : options_(options), backend_(backend) {}

  // Seconds of one call: the best of three rounds of many, after one that loads what is loaded on first use.
  template <class Call>
  double seconds(const Call& call) const {
    using Clock = std::chrono::steady_clock;
    call();
    double best = 0;
    for (int round = 0; round < 3; ++round) {
      backend_.synchronize();
      const auto start = Clock::now();
      for (int i = 0; i < options_.repeats; ++i) call();
      backend_.synchronize();
      const double time = std::chrono::duration<double>(Clock::now() - start).count() / options_.repeats;
      if (round == 0 || time < best) best = time;
    }
    return best;
  }

  nlohmann::ordered_json linear() const {
    const int64_t batch = options_.batch, in = options_.features, out = options_.features;
    constexpr DType type = DType::bf16;
    const auto plan = backend_.plan_linear(
        {.input = {.shape = Shape{batch, in}, .dtype = type}, .out_features = out, .activation = Activation::relu});
    const Buffer x = numbers({batch, in}, type), dy = numbers({batch, out}, type), w16 = numbers({out, in}, type);
    const Buffer w = numbers({out, in}, DType::f32), b = numbers({out}, DType::f32);
    const Buffer y = zeros({batch, out}, type), dx = zeros({batch, in}, type);
    const Buffer dw = zeros({out, in}, DType::f32), db = zeros({out}, DType::f32);
    const Buffer workspace = backend_.allocate(plan->workspace_bytes());
    plan->take_weights(floats(w), workspace.data());

    const cuda::BlasLt blas(*backend_.gpu());
    const auto alone = [&](const cuda::ProductSpec& spec, const Buffer& p, const Buffer& q, const Buffer& d) {
      LibraryProduct product(blas, spec);
      const auto run = [&] { product.run(p.data(), q.data(), d.data()); };
      product.fastest([&] { return seconds(run); });
      return seconds(run);
    };
    const cuda::Matrix ws{type, in, out}, xs{type, in, batch}, dys{type, out, batch};
    const auto transposed = [](cuda::Matrix matrix) { return matrix.transposed = true, matrix; };
    nlohmann::ordered_json result{{"batch", batch}, {"in", in}, {"out", out}, {"type", "bf16"}};
    const double flops = 2.0 * static_cast<double>(batch) * static_cast<double>(in) * static_cast<double>(out);
    const auto add = [&](const char* pass, double ours, double library) {
      result[pass] = {{"tflops", flops / ours / 1e12}, {"library_tflops", flops / library / 1e12}};
    };
    add("forward", seconds([&] { plan->forward(x.data(), floats(w), floats(b), y.data(), workspace.data()); }),
        alone({.a = transposed(ws), .b = xs, .type = type}, w16, x, y));
    add("input_gradient", seconds([&] { plan->backward_data(dy.data(), floats(w), dx.data(), workspace.data()); }),
        alone({.a = ws, .b = dys, .type = type}, w16, dy, dx));
    add("weight_gradient",
        seconds([&] { plan->backward_weights(x.data(), dy.data(), floats(dw), floats(db), false, workspace.data()); }),
        alone({.a = xs, .b = transposed(dys), .type = DType::f32}, x, dy, dw));
    return result;
  }

  // Bytes that must move at least, per second: SGD with momentum reads three arrays and writes two, Adam reads four and
  // writes three, a copy reads one and writes one.
  nlohmann::ordered_json updates() const {
    const auto n = static_cast<size_t>(options_.floats);
    const Buffer p = zeros({options_.floats}, DType::f32), g = zeros({options_.floats}, DType::f32),
                 m = zeros({options_.floats}, DType::f32), v = zeros({options_.floats}, DType::f32);
    const OptimizerOps& ops = backend_.optimizer_ops();
    const auto rate = [&](int arrays, double time) {
      return 4e-9 * arrays * static_cast<double>(options_.floats) / time;
    };
    return {
        {"floats", options_.floats},
        {"copy_gb_s", rate(2, seconds([&] { backend_.memory().copy(p.as<float>(), g.as<float>()); }))},
        {"sgd_gb_s",
         rate(5, seconds([&] { ops.sgd({.lr = 0.1, .momentum = 0.9}, n, floats(p), floats(g), floats(m)); }))},
        {"adam_gb_s", rate(7, seconds([&] { ops.adam({}, n, floats(p), floats(g), floats(m), floats(v), nullptr); }))}};
  }

 private:
  static float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }
  Buffer zeros(const Shape& shape, DType type) const { return backend_.allocate(TensorDesc{shape, 1, type}.bytes()); }
  // No zeros: they cost a GPU less power, and time.
  Buffer numbers(const Shape& shape, DType type) const {
    std::vector<float> values(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761U % 2048) / 1024 - 1;
    Buffer wide = backend_.allocate(values.size() * sizeof(float));
    backend_.memory().upload(wide.as<float>(), values);
    if (type == DType::f32) return wide;
    Buffer made = zeros(shape, type);
    backend_.reorder({shape, 1, DType::f32}, wide.data(), {shape, 1, type}, made.data());
    backend_.synchronize();
    return made;
  }

  Options options_;
  Backend& backend_;
};

int run(const Options& options) {
  const GpuFacts facts = gpu_facts();
  if (facts.visible.empty()) throw_error("no GPU: {}", facts.why_none);
  const auto backend = make_backend("cuda", {}, {.index = 0});
  const Rates rates(options, *backend);
  nlohmann::ordered_json line{{"gpu", facts.visible.front().name}, {"libraries", backend->libraries()}};
  line["linear"] = rates.linear();
  line["update"] = rates.updates();
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Options options;
  CLI::App app{"Rates of linear layers and optimizers on a GPU beside the library's and the memory's"};
  app.add_option("--batch", options.batch, "Rows of the linear layer's input")->capture_default_str();
  app.add_option("--features", options.features, "Its inputs, and its outputs")->capture_default_str();
  app.add_option("--floats", options.floats, "Parameters that are updated")->capture_default_str();
  app.add_option("--repeats", options.repeats, "Calls that are timed together")->capture_default_str();
  for (CLI::Option* option : app.get_options())
    if (option->get_name() != "--help") option->check(CLI::Range(1, 1 << 28));
  CLI11_PARSE(app, argc, argv);
  try {
    return lockstep::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu: %s\n", error.what());
    return 1;
  }
}
