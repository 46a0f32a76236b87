// Any number of samples, ranks, batch and accumulation: several hundred geometries, ranks as threads.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "data/sampler.h"
#include "support/thread_ranks.h"
#include "support/uneven_training.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// The rows that the samplers of all ranks hand out are those of the plain deal, and how often each row comes is what
// its rule promises.
void check_rows(const Geometry& g) {
  const DataPlanSpec spec{.samples = g.samples,
                          .world_size = g.ranks,
                          .batch_size = g.batch,
                          .accumulate = g.accumulate,
                          .uneven = parse_uneven(g.uneven),
                          .drop_last = g.drop_last};
  const EpochPlan plan(spec);
  const Deal deal = g.deal(1);
  REQUIRE(plan.micro_steps() == static_cast<int64_t>(deal.size()));
  std::vector<int> seen(static_cast<size_t>(g.samples), 0);
  for (int64_t rank = 0; rank < g.ranks; ++rank) {
    Sampler sampler(spec, rank, {.seed = g.seed});
    sampler.set_epoch(1);
    for (int64_t m = 0; m < plan.micro_steps(); ++m) {
      const std::span<const int64_t> rows = sampler.next();
      CHECK(Rows(rows.begin(), rows.end()) == deal[static_cast<size_t>(m)][static_cast<size_t>(rank)]);
      CHECK(plan.local_count(rank, m) == static_cast<int64_t>(rows.size()));
      for (int64_t row : rows) ++seen[static_cast<size_t>(row)];
    }
    CHECK(sampler.next().empty());
  }
  const auto [least, most] = std::ranges::minmax(seen);
  if (g.uneven != "pad") CHECK(most <= 1);
  if (g.uneven != "drop" && !g.drop_last) CHECK(least >= 1);
}

struct Files {
  std::filesystem::path directory = std::filesystem::temp_directory_path() / fmt::format("lockstep-own-{}", getpid());
  Files() { std::filesystem::create_directories(directory); }
  ~Files() { std::filesystem::remove_all(directory); }
  std::string pattern() const { return (directory / "part-{rank}.csv").string(); }
  void write(const OwnGeometry& g) const {
    for (size_t r = 0; r < g.sizes.size(); ++r)
      std::ofstream(directory / fmt::format("part-{}.csv", r)) << g.table(static_cast<int>(r));
  }
};

template <class G>
void check_training(const G& g, const std::string& yaml, int ranks, double& worst, int& trained) {
  CAPTURE(g.text());
  std::vector<double> distance(static_cast<size_t>(ranks), 0);
  std::vector<int> ran(static_cast<size_t>(ranks), 0);
  const auto errors = run_ranks(ranks, [&](Communicator& comm) {
    const auto at = static_cast<size_t>(comm.rank());
    ran[at] = train_and_compare(g, yaml, *make_cpu_backend({.threads = 1}), comm, distance[at]) ? 1 : 0;
  });
  for (const std::string& error : errors) CHECK(error == "");
  worst = std::max(worst, std::ranges::max(distance));
  trained += ran[0];
}

}  // namespace

TEST_CASE("three hundred geometries: every rank sees the rows its rule promises") {
  std::mt19937 engine(1);
  for (int round = 0; round < 300; ++round) {
    const Geometry g = random_geometry(engine, 1 + round % 9);
    CAPTURE(g.text());
    check_rows(g);
  }
}

TEST_CASE("three hundred geometries: ranks as threads have the weights of plain loops after every step") {
  std::mt19937 engine(2);
  double worst = 0;
  int trained = 0;
  for (int round = 0; round < 300; ++round) {
    const int ranks = 1 + round % 8;
    const Geometry g = random_geometry(engine, ranks);
    check_training(g, g.yaml(), ranks, worst, trained);
  }
  MESSAGE(trained << " of 300 geometries had something to train; weights within " << worst);
  CHECK(trained > 200);
}

TEST_CASE("a hundred geometries of own data: join and stop have the weights of plain loops after every step") {
  const Files files;
  std::mt19937 engine(3);
  double worst = 0;
  int trained = 0;
  for (int round = 0; round < 100; ++round) {
    const int ranks = 1 + round % 6;
    const OwnGeometry g = random_own(engine, ranks);
    files.write(g);
    check_training(g, g.yaml(files.pattern()), ranks, worst, trained);
  }
  MESSAGE(trained << " of 100 geometries had something to train; weights within " << worst);
  CHECK(trained > 60);
}

TEST_CASE("own data that runs out early is refused where errors are asked for") {
  const Files files;
  OwnGeometry g{.sizes = {9, 4, 8}, .batch = 2, .early_end = "error"};
  files.write(g);
  const std::string refusal =
      "rank 1 exhausts all its inputs after 2 of 5 micro-steps: it has 4 samples, rank 0 has 9 (sampler.early_end: "
      "join "
      "goes on with the other ranks, stop ends the epoch there for all)";
  double worst = 0;
  for (const std::string& error : run_ranks(3, [&](Communicator& comm) {
         train_and_compare(g, g.yaml(files.pattern()), *make_cpu_backend({.threads = 1}), comm, worst);
       }))
    CHECK(error == refusal);
  g.sizes = {9, 10, 9};  // unequal, but with five micro-steps each
  files.write(g);
  for (const std::string& error : run_ranks(3, [&](Communicator& comm) {
         train_and_compare(g, g.yaml(files.pattern()), *make_cpu_backend({.threads = 1}), comm, worst);
       }))
    CHECK(error == "");
}

TEST_CASE("own data of unlike kinds is refused on all ranks alike") {
  const Files files;
  std::ofstream(files.directory / "part-0.csv") << "1,2,0\n3,4,1\n";
  std::ofstream(files.directory / "part-1.csv") << "1,0\n3,1\n";
  const std::string yaml = fmt::format(
      "model: {{layers: [{{linear: 2}}]}}\ndata: {{train: {{kind: csv, file: \"{}\"}}}}\n", files.pattern());
  for (const std::string& error : run_ranks(2, [&](Communicator& comm) {
         const Config config = parse_config(yaml, "own.yaml", {});
         const auto backend = make_cpu_backend({.threads = 1});
         RunLog log("", false);
         Trainer trainer(config, *backend, comm, log);
       }))
    CHECK(error.starts_with("data.train: the ranks' own data sets are not of one kind: rank 0 has samples [2] with"));
}

TEST_CASE("own data follows no rule for dealing") {
  const Files files;
  OwnGeometry g{.sizes = {3, 4}, .batch = 1};
  files.write(g);
  for (const std::string& error : run_ranks(2, [&](Communicator& comm) {
         const Config config = parse_config(g.yaml(files.pattern()), "own.yaml", {"sampler.uneven=pad"});
         const auto backend = make_cpu_backend({.threads = 1});
         RunLog log("", false);
         Trainer trainer(config, *backend, comm, log);
       }))
    CHECK(error.starts_with("sampler.uneven pad is for data that is dealt to the ranks, but the ranks have 3 to 4"));
}
