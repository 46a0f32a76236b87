// ranks: 1 2
// links: train
// How often the host waits for a GPU in a step of training: clipping and trust ratios add nothing to it.
#include <doctest/doctest.h>

#include "comm/run_agreed.h"
#include "sim/training.h"
#include "train/stepper.h"

using namespace lockstep;
using test::kMlp;
using test::SharedFolder;

namespace {

struct Counts {
  int waits = 0, allocations = 0;
};

// Of two steps after the first.
Counts counts_of(const std::vector<std::string>& more) {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  std::vector<std::string> overrides{"device.kind=cuda", "device.threads=1", "device.cuda_graph=off",
                                     "run.dir=" + (folder / "run")};
  overrides.insert(overrides.end(), more.begin(), more.end());
  sim::reset({});
  const Config config = parse_config(kMlp, "training.yaml", overrides);
  const Resources resources = claim_resources(config, env);
  Counts counts;
  {
    RunLog log(folder / "run", env.rank() == 0);
    Trainer trainer(config, *resources.backend, *resources.communicator, log);
    Stepper stepper(trainer);
    const auto count = [&](int sign) {
      resources.backend->synchronize();
      resources.communicator->barrier();
      for (const sim::Traced& traced : sim::trace()) counts.waits += sign * (traced.stream == 0);
      for (const char* function : {"cudaMalloc", "cudaHostAlloc"}) counts.allocations += sign * sim::calls()[function];
    };
    stepper.run(1);
    count(-1);
    stepper.run(2);
    count(1);
  }
  resources.communicator->barrier();
  CHECK_EQ(sim::last_misuse(), "");
  return counts;
}

}  // namespace

TEST_CASE("steps with norms wait for the GPU as often as plain steps") {
  for (const std::string window : {"train.accumulate=1", "train.accumulate=2"}) {
    const Counts plain = counts_of({window, "optimizer.momentum=0.9"});
    CHECK_GE(plain.waits, 2);  // the losses
    CHECK_EQ(plain.allocations, 0);
    for (const std::vector<std::string>& overrides : {std::vector<std::string>{"train.clip_norm=0.5"},
                                                      {"train.clip_norm=0.5", "train.clip_norm_type=inf"},
                                                      {"train.clip_norm=0.5", "train.clip_norm_type=3"},
                                                      {"optimizer.kind=lars"},
                                                      {"optimizer.kind=lamb"}}) {
      CAPTURE(fmt::format("{} {}", window, fmt::join(overrides, " ")));
      std::vector<std::string> all = overrides;
      all.push_back(window);
      const Counts counts = counts_of(all);
      CHECK_EQ(counts.waits, plain.waits);
      CHECK_EQ(counts.allocations, 0);
    }
    // The counter counts: the look for what is not finite needs its answer in every step.
    CHECK_GT(counts_of({window, "train.on_nonfinite=skip"}).waits, plain.waits);
  }
}
