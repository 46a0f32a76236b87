// Synthetic sets against the tensors PyTorch made for the articles' scripts.
#include "data/synthetic.h"

#include <doctest/doctest.h>

#include "data/files.h"
#include "data/rows.h"
#include "support/golden.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

nlohmann::json run(const std::string& name) {
  const nlohmann::json file = golden("seeds.json");
  for (const auto& one : file["runs"]) {
    if (one["name"] == name) return one["ranks"];
  }
  throw_error("no run {}", name);
}

DatasetSettings named(const std::string& name, uint64_t seed = 0) {
  DatasetSettings settings;
  settings.kind = "synthetic";
  settings.name = name;
  settings.seed = seed;
  return settings;
}

DatasetSettings teacher() {
  DatasetSettings settings = named("teacher", 7);
  settings.samples = 229;
  settings.shape = {8};
  settings.classes = 3;
  return settings;
}

std::string error(const DatasetSettings& settings) {
  return error_of([&] { make_synthetic(settings, 0); });
}

}  // namespace

TEST_CASE("toy sets are the book's points") {
  const auto train = make_synthetic(named("toy_train"), 0);
  CHECK_EQ(train->size(), 5);
  CHECK_EQ(train->classes(), 2);
  const Rows rows = read_rows(*train, {3, 0});
  CHECK_EQ(rows.x, std::vector<float>{2.3F, -1.1F, -1.2F, 3.1F});
  CHECK_EQ(rows.labels, std::vector<int64_t>{1, 0});
  CHECK_EQ(read_all(*make_synthetic(named("toy_test"), 0)).x, std::vector<float>{-0.8F, 2.8F, 2.6F, -1.6F});
}

TEST_CASE("augmented toy sets are drawn like the four-rank script's") {
  const auto expected = run("s1_w4_f4")[0];
  DatasetSettings train = named("toy_train", 123), test = named("toy_test", 123);
  train.augment = test.augment = 4;
  Generator script(123);  // one generator: the training set, then the test set
  const Rows train_rows = read_all(*make_synthetic(train, script));
  CHECK_EQ(differs_bits(train_rows.x, flat_f32(expected["X_train"])), "");
  CHECK_EQ(train_rows.labels, std::vector<int64_t>{0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1});
  CHECK_EQ(differs_bits(read_all(*make_synthetic(test, script)).x, flat_f32(expected["X_test"])), "");
  // Each on its own, from its seed.
  CHECK_EQ(differs_bits(read_all(*make_synthetic(train, 0)).x, flat_f32(expected["X_train"])), "");
  CHECK_EQ(differs_bits(read_all(*make_synthetic(test, 0)).x, flat_f32(expected["X_test"])), "");
  // The model is drawn next.
  Generator skipped(123);
  skipped.discard(script_words(train) + script_words(test));
  for (int i = 0; i < 100; ++i) CHECK_EQ(skipped.r32(), script.r32());
  CHECK_EQ(script_words(named("toy_train")), 0);
}

TEST_CASE("toy16 is the all-reduce check's set") {
  const auto expected = run("s0ar")[0];
  const Rows rows = read_all(*make_synthetic(named("toy16"), 0));
  CHECK_EQ(differs_bits(rows.x, flat_f32(expected["X"])), "");
  CHECK_EQ(rows.labels, flat_i64(expected["y"]));
}

TEST_CASE("teacher is the 229-sample script's set") {
  const auto expected = run("s2_w1")[0]["data"];
  const auto dataset = make_synthetic(teacher(), 0);
  CHECK_EQ(dataset->size(), 229);
  const Rows rows = read_all(*dataset);
  CHECK_EQ(rows.labels, flat_i64(expected["labels"]));
  CHECK_EQ(differs_bits(std::span(rows.x).first(8), flat_f32(expected["x_row0"])), "");
  CHECK_EQ(differs_bits(std::span(rows.x).last(8), flat_f32(expected["x_last_row"])), "");
  double sum = 0;
  for (double value : rows.x) sum += value;
  CHECK_EQ(sum, doctest::Approx(expected["x_sum"].get<double>()).epsilon(1e-12));
}

TEST_CASE("normal_regression gives every rank the torchrun script's own samples") {
  DatasetSettings settings = named("normal_regression", 100);
  settings.samples = 16;
  settings.shape = {10};
  settings.seed_per_rank = true;
  const auto ranks = run("s3_w4");
  for (int rank = 0; rank < 4; ++rank) {
    const auto dataset = make_synthetic(settings, rank);
    CHECK(dataset->per_rank());
    const Rows rows = read_all(*dataset);
    CHECK_EQ(differs_bits(std::span(rows.x).first(3), flat_f32(ranks[static_cast<size_t>(rank)]["x00_first3"])), "");
    CHECK_EQ(differs_bits(std::span(rows.targets).first(2), flat_f32(ranks[static_cast<size_t>(rank)]["y_first2"])),
             "");
  }
}

TEST_CASE("random is randn then randint of one generator") {
  DatasetSettings settings = named("random", 5);
  settings.samples = 7;
  settings.shape = {3, 4, 4};
  settings.classes = 10;
  const auto dataset = make_synthetic(settings, 3);
  CHECK_FALSE(dataset->per_rank());
  const Rows rows = read_all(*dataset);
  Generator generator(5);
  std::vector<float> x(7 * 48);
  generator.normal(x);
  CHECK_EQ(rows.x, x);
  for (int64_t label : rows.labels) CHECK_EQ(label, generator.randint(0, 10));
}

TEST_CASE("identity and constant repeat their values") {
  DatasetSettings settings = named("identity");
  settings.samples = 5;
  settings.values = {0, 1};
  CHECK_EQ(read_all(*make_synthetic(settings, 0)).x, std::vector<float>{0, 1, 2, 3, 4});
  CHECK_EQ(read_all(*make_synthetic(settings, 0)).targets, std::vector<float>{0, 1, 0, 1, 0});
  settings.classes = 2;
  CHECK_EQ(read_all(*make_synthetic(settings, 0)).labels, std::vector<int64_t>{0, 1, 0, 1, 0});
  DatasetSettings constant = named("constant");
  constant.values = {0, 0, 0, 0, 1, 1, 1};
  CHECK_EQ(make_synthetic(constant, 0)->size(), 7);
  CHECK_EQ(read_rows(*make_synthetic(constant, 0), {6, 0}).x, std::vector<float>{1, 1});
  CHECK_EQ(read_rows(*make_synthetic(constant, 0), {6, 0}).targets, std::vector<float>{1, 0});
}

TEST_CASE("synthetic settings that make no sense are refused") {
  CHECK(has(error(named("toy17")), "expected one of toy_train, toy_test, toy16, teacher"));
  DatasetSettings settings = teacher();
  settings.samples = 0;
  CHECK(has(error(settings), "teacher: samples: expected 1 or more, found 0"));
  settings = teacher();
  settings.classes = 1;
  CHECK(has(error(settings), "teacher: classes: expected 2 or more, found 1"));
  settings = teacher();
  settings.shape = {};
  CHECK(has(error(settings), "teacher: shape: expected the shape of a sample"));
  settings = teacher();
  settings.shape = {0};
  CHECK(has(error(settings), "found [0]"));
  settings = teacher();
  settings.samples = int64_t{1} << 62;
  CHECK(has(error(settings), "passes 2^63"));
  settings = teacher();
  settings.augment = 2;
  CHECK(has(error(settings), "augment: only for toy_train and toy_test"));
  settings = named("toy_train");
  settings.augment = 0;
  CHECK(has(error(settings), "augment: expected 1 to"));
  CHECK(has(error(named("constant")), "constant: expected values"));
}
