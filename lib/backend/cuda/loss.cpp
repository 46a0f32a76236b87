#include "backend/cuda/loss.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "backend/cuda/loss_kernels.h"
#include "backend/cuda/reduction_shape.h"
#include "backend/loss_checks.h"
#include "core/error.h"

namespace lockstep {
namespace {

class CudaLoss final : public LossPlan {
 public:
  CudaLoss(const cuda::Context& context, const LossSpec& spec, int64_t batch, int64_t classes)
      : context_(context),
        spec_(spec),
        batch_(batch),
        classes_(classes),
        parts_(context.allocate((cuda::reduction_blocks + 1) * sizeof(cuda::Sums))),
        total_(context.allocate(sizeof(cuda::Sums))),
        result_(context.pinned(sizeof(cuda::Sums))) {
    for (Sent& sent : sent_) sent.sums = context.pinned(sizeof(cuda::Sums));
    if (spec.class_weights.empty()) {
      weight_sum_ = static_cast<double>(classes);
      return;
    }
    weight_sum_ = std::accumulate(spec.class_weights.begin(), spec.class_weights.end(), 0.0);
    const size_t bytes = spec.class_weights.size() * sizeof(float);
    const Buffer host = context.pinned(bytes);
    std::ranges::copy(spec.class_weights, host.as<float>().begin());
    weights_ = context.allocate(bytes);
    context.to_device(context.compute(), weights_.data(), host.data(), bytes);
    context.synchronize(context.compute());
  }

  LossSums forward(const TensorView& output, const TensorView& target) override {
    return forward_backward(output, target, 0, nullptr);
  }
  LossSums forward_backward(const TensorView& output, const TensorView& target, double scale,
                            float* d_output) override {
    queue(output, target, scale, d_output);
    context_.to_host(context_.compute(), result_.data(), parts_.data(), sizeof(cuda::Sums));
    context_.synchronize(context_.compute());
    return read(result_);
  }

  void add_forward_backward(const TensorView& output, const TensorView& target, double scale, float* d_output,
                            bool first) override {
    queue(output, target, scale, d_output);
    cuda::add_sums(context_.compute().get(), parts_.as<cuda::Sums>().data(), !first, total_.as<cuda::Sums>().data());
  }
  void send_sums() override {
    const Sent& sent = sent_[sends_++ % most_sent];
    context_.to_host(context_.compute(), sent.sums.data(), total_.data(), sizeof(cuda::Sums));
    context_.compute().record(sent.arrived);
  }
  LossSums take_sums() override {
    const Sent& sent = sent_[takes_++ % most_sent];
    context_.wait(sent.arrived);
    return read(sent.sums);
  }

 private:
  void queue(const TensorView& output, const TensorView& target, double scale, float* gradient) const {
    const int64_t rows = check_loss_output(loss_name(spec_.kind), output, batch_, classes_);
    const bool labels = spec_.kind == LossSpec::Kind::cross_entropy && target.desc.dtype == DType::i64;
    if (!labels) check_dense_target(loss_name(spec_.kind), output, target);
    if (labels) check_label_target(target, rows);
    auto* parts = static_cast<cuda::Sums*>(parts_.data());
    const cudaStream_t stream = context_.compute().get();
    const auto n = static_cast<size_t>(rows), columns = static_cast<size_t>(classes_);
    const auto* weights = static_cast<const float*>(weights_.data());
    if (spec_.kind == LossSpec::Kind::cross_entropy) {
      cuda::cross_entropy(stream,
                          {.rows = n,
                           .classes = columns,
                           .output = output.f32(),
                           .labels = labels ? target.i64() : nullptr,
                           .probabilities = labels ? nullptr : target.f32(),
                           .class_weights = weights,
                           .smoothing = spec_.label_smoothing,
                           .weight_sum = weight_sum_,
                           .ignore_index = spec_.ignore_index,
                           .scale = scale,
                           .gradient = gradient},
                          parts);
    } else {
      cuda::elementwise_loss(stream, spec_, weights, {n, columns, output.f32(), target.f32(), scale, gradient}, parts);
    }
  }

  LossSums read(const Buffer& host) const {
    const cuda::Sums& sums = host.as<cuda::Sums>()[0];
    if (sums.bad_row != cuda::no_bad_row)
      throw_error("cross_entropy: the target of row {} is not one of {} classes (0 to {})", sums.bad_row, classes_,
                  classes_ - 1);
    return {.loss = sums.loss, .weight = sums.weight};
  }

  const cuda::Context& context_;
  LossSpec spec_;
  int64_t batch_, classes_;
  double weight_sum_;
  Buffer weights_, parts_, total_, result_;  // the last one pinned
  struct Sent {
    Buffer sums;  // pinned
    cuda::Event arrived;
  };
  std::array<Sent, most_sent> sent_;
  size_t sends_ = 0, takes_ = 0;
};

}  // namespace

std::unique_ptr<LossPlan> make_cuda_loss(const cuda::Context& context, const LossSpec& spec, int64_t batch,
                                         int64_t classes) {
  check_loss_spec(spec, batch, classes);
  return std::make_unique<CudaLoss>(context, spec, batch, classes);
}

}  // namespace lockstep
