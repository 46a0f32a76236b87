// ranks: 1 2 3
// links: dist
// Batch normalisation over ranks with unequal and empty shares against the oracle on the whole batch and against a case
// worked by hand, and how running statistics of different ranks become one.
#include "dist/batch_norm_sync.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "backend/cpu/batch_norm.h"
#include "backend/cpu/cpu_plans.h"
#include "comm/factory.h"
#include "core/error.h"
#include "dist/running_statistics.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using lockstep::test::differs;
using oracle::narrow;
using oracle::random_floats;
using oracle::widen;

namespace {

constexpr int64_t kSamples = 7, kChannels = 16;
constexpr size_t kC = kChannels;

// Shares of seven samples by rank, for so many ranks.
std::vector<std::vector<int64_t>> splits(int ranks) {
  if (ranks == 1) return {{7}};
  if (ranks == 2) return {{3, 4}, {6, 1}, {7, 0}, {0, 7}};
  return {{3, 2, 2}, {1, 5, 1}, {4, 0, 3}, {0, 0, 7}, {0, 7, 0}};
}

struct Share {
  std::vector<float> y, dx, running_mean, running_var;
  std::vector<double> dweight, dbias;  // summed over ranks
  float tracked = 0;
};

std::vector<float> rows(const std::vector<float>& all, int64_t first, int64_t count) {
  const auto row = static_cast<std::ptrdiff_t>(all.size()) / kSamples;
  return {all.begin() + first * row, all.begin() + (first + count) * row};
}

// What a rank with `count` samples from `first` on computes.
Share run_share(Communicator& comm, const Shape& whole, int64_t first, int64_t count, const std::vector<float>& x,
                const std::vector<float>& dy, const std::vector<float>& w, const std::vector<float>& b) {
  CommunicatorReducer reducer(comm);
  const Shape shape = whole.without_front().with_front(std::max<int64_t>(count, 1));
  const auto plan = make_cpu_batch_norm({.input = {.shape = shape}, .across_ranks = &reducer});
  Share share{.running_mean = std::vector<float>(kC, 0.5F), .running_var = std::vector<float>(kC, 2)};
  const std::vector<float> own_x = rows(x, first, count), own_dy = rows(dy, first, count);
  std::vector<float> dw(kC), db(kC);
  std::vector<double> saved(plan->saved_bytes() / sizeof(double));
  share.y.resize(own_x.size()), share.dx.resize(own_x.size());
  if (count > 0) {
    plan->forward(own_x.data(), w.data(), b.data(), share.running_mean.data(), share.running_var.data(), &share.tracked,
                  share.y.data(), saved.data());
    plan->backward(own_x.data(), own_dy.data(), w.data(), share.dx.data(), dw.data(), db.data(), false, saved.data(),
                   nullptr);
  } else {
    plan->forward_empty(share.running_mean.data(), share.running_var.data(), &share.tracked);
    plan->backward_empty();
  }
  CHECK_EQ(reducer.calls(), 3);
  share.dweight.assign(dw.begin(), dw.end()), share.dbias.assign(db.begin(), db.end());
  comm.all_reduce(share.dweight, ReduceOp::sum);
  comm.all_reduce(share.dbias, ReduceOp::sum);
  return share;
}

}  // namespace

TEST_CASE("synchronised batch norm of any shares equals the oracle on the whole batch") {
  const MpiEnvironment env;
  for (const char* kind : {"shm", "mpi"}) {
    const auto comm = make_communicator(kind, env, 60, nullptr);
    for (const Shape& whole : {Shape{kSamples, kChannels}, Shape{kSamples, kChannels, 3, 5}}) {
      const auto count = static_cast<size_t>(whole.numel());
      const int64_t inner = whole.numel() / kSamples / kChannels;
      const std::vector<float> x = random_floats(count, 1, 90, 96), dy = random_floats(count, 2),
                               w = random_floats(kC, 3), b = random_floats(kC, 4);
      const auto y = narrow(oracle::batch_norm(kSamples, kChannels, inner, 1e-5, widen(x), widen(w), widen(b)));
      const auto grad = oracle::batch_norm_backward(kSamples, kChannels, inner, 1e-5, widen(x), widen(w), widen(dy));
      const auto statistics = oracle::batch_statistics(kSamples, kChannels, inner, widen(x));
      const double n = static_cast<double>(kSamples * inner);
      for (const std::vector<int64_t>& split : splits(comm->size())) {
        const auto rank = static_cast<size_t>(comm->rank());
        const int64_t first = std::accumulate(split.begin(), split.begin() + comm->rank(), int64_t{0});
        const Share share = run_share(*comm, whole, first, split[rank], x, dy, w, b);
        CHECK_EQ(differs(share.y, rows(y, first, split[rank]), 1e-5, 2e-6), "");
        CHECK_EQ(differs(share.dx, rows(narrow(grad.dx), first, split[rank]), 1e-5, 2e-6), "");
        CHECK_EQ(differs(narrow(share.dweight), narrow(grad.dweight), 1e-5, 2e-5), "");
        CHECK_EQ(differs(narrow(share.dbias), narrow(grad.dbias), 1e-5, 2e-6), "");
        for (size_t c = 0; c < kC; ++c) {
          CHECK_EQ(share.running_mean[c], doctest::Approx(0.9 * 0.5 + 0.1 * statistics.mean[c]).epsilon(1e-6));
          CHECK_EQ(share.running_var[c],
                   doctest::Approx(0.9 * 2 + 0.1 * statistics.variance[c] * n / (n - 1)).epsilon(1e-6));
        }
        CHECK_EQ(share.tracked, 1);
        std::vector<double> lowest(share.running_var.begin(), share.running_var.end()), highest = lowest;
        comm->all_reduce(lowest, ReduceOp::min);
        comm->all_reduce(highest, ReduceOp::max);
        CHECK(lowest == highest);  // the same bits on all ranks
      }
    }
  }
}

TEST_CASE("one value per channel over all ranks is refused on all of them") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  CommunicatorReducer reducer(*comm);
  const auto plan = make_cpu_batch_norm({.input = {.shape = Shape{1, 2}}, .across_ranks = &reducer});
  const std::vector<float> x{1, 2};
  std::vector<float> mean(2), var(2), y(2);
  std::vector<double> saved(plan->saved_bytes() / sizeof(double));
  float tracked = 0;
  const auto forward = [&] {
    if (comm->rank() == 0) {
      plan->forward(x.data(), nullptr, nullptr, mean.data(), var.data(), &tracked, y.data(), saved.data());
    } else {
      plan->forward_empty(mean.data(), var.data(), &tracked);
    }
  };
  CHECK_THROWS_AS(forward(), Error);
  CHECK_EQ(tracked, 0);
}

TEST_CASE("a batch that is empty on every rank leaves the running statistics alone") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  CommunicatorReducer reducer(*comm);
  const auto plan = make_cpu_batch_norm({.input = {.shape = Shape{4, 2}}, .across_ranks = &reducer});
  std::vector<float> mean{1, 2}, var{3, 4};
  float tracked = 5;
  plan->forward_empty(mean.data(), var.data(), &tracked);
  plan->backward_empty();
  CHECK(mean == std::vector<float>{1, 2});
  CHECK(var == std::vector<float>{3, 4});
  CHECK_EQ(tracked, 5);
}

// Three zeros on rank 0 and a four on rank 1, where there is one; further ranks have no sample.
TEST_CASE("shares of three zeros and one four have mean 1 and variance 3 and running variance of 4") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  CommunicatorReducer reducer(*comm);
  std::vector<float> x, dy;
  if (comm->rank() == 0) x = {0, 0, 0}, dy = {1, 0, 0};
  if (comm->rank() == std::min(1, comm->size() - 1)) x.push_back(4), dy.push_back(2);
  const auto count = static_cast<int64_t>(x.size());
  const auto plan = make_cpu_batch_norm(
      {.input = {.shape = Shape{std::max<int64_t>(count, 1), 1}}, .momentum = 1.0, .across_ranks = &reducer});
  std::vector<float> y(x.size()), dx(x.size());
  std::vector<double> saved(plan->saved_bytes() / sizeof(double));
  float mean = 7, var = 7, tracked = 0, dw = 0, db = 0;
  if (count > 0) {
    plan->forward(x.data(), nullptr, nullptr, &mean, &var, &tracked, y.data(), saved.data());
    plan->backward(x.data(), dy.data(), nullptr, dx.data(), &dw, &db, false, saved.data(), nullptr);
  } else {
    plan->forward_empty(&mean, &var, &tracked);
    plan->backward_empty();
  }
  CHECK_EQ(mean, doctest::Approx(1));
  CHECK_EQ(var, doctest::Approx(4));
  CHECK_EQ(tracked, 1);
  // xhat = (x - 1) / s with s = sqrt(3 + eps); dx = (dy - mean(dy) - xhat mean(dy xhat)) / s.
  const double s = std::sqrt(3 + 1e-5), mean_dy = 3.0 / 4, mean_dy_xhat = (1 * -1 + 2 * 3) / s / 4;
  for (size_t i = 0; i < x.size(); ++i) {
    const double xhat = (x[i] - 1.0) / s;
    CHECK_EQ(y[i], doctest::Approx(xhat));
    CHECK_EQ(dx[i], doctest::Approx((dy[i] - mean_dy - xhat * mean_dy_xhat) / s));
  }
  double sums[2] = {dw, db};
  comm->all_reduce(sums, ReduceOp::sum);
  CHECK_EQ(sums[0], doctest::Approx(4 * mean_dy_xhat));
  CHECK_EQ(sums[1], doctest::Approx(3));
}

TEST_CASE("running statistics are those of rank 0 or the mean over ranks by their samples") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  // Of several ranks the first has trained on nothing, the others on 3, 2, ... samples.
  const auto samples_of = [&](int rank) { return comm->size() == 1 ? 2 : rank == 0 ? 0 : 4 - rank; };
  double weight = 0, mean_rank = 0;
  for (int rank = 0; rank < comm->size(); ++rank) weight += samples_of(rank), mean_rank += rank * samples_of(rank);
  mean_rank /= weight;
  for (const char* policy : {"rank0", "average", "sync"}) {
    CAPTURE(policy);
    ParameterStore store;
    const BufferId mean = store.add_buffer("bn.running_mean", Shape{3}),
                   count = store.add_buffer("bn.num_batches_tracked", Shape{});
    store.lay_out({}, Buffer::host);
    for (float& value : store.buffer(mean)) value = 4.0F + static_cast<float>(comm->rank());
    store.buffer(count)[0] = 10.0F + static_cast<float>(comm->rank());
    RunningStatistics statistics(parse_batch_norm_policy(policy), store,
                                 deal_virtual_ranks({}, comm->rank(), comm->size()), *comm);
    statistics.leave(0, samples_of(comm->rank()));
    const bool average = policy == std::string("average"), sync = policy == std::string("sync");
    for (int call = 0; call < 2; ++call) {  // the second changes nothing
      statistics.agree();
      const double expected = 4 + (average ? mean_rank : sync ? comm->rank() : 0);
      for (const float value : store.buffer(mean)) CHECK_EQ(value, doctest::Approx(expected));
      CHECK_EQ(store.buffer(count)[0], 10.0F + static_cast<float>(average ? comm->size() - 1
                                                                  : sync  ? comm->rank()
                                                                          : 0));
    }
  }
}
