// lockstep predict under mpirun: the same bytes for 1, 2 and 3 ranks, from arrays, tables and images.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "support/image_files.h"
#include "support/run_folder.h"
#include "support/saved_command.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

// A run over bytes in files, so that images can be the same samples.
constexpr const char* kConvNet = R"(
model: {layers: [{conv2d: {out: 6, kernel: 3, padding: 1}}, relu, {max_pool2d: 2}, flatten, {linear: 4}]}
data:
  train: {kind: npy, x: x.npy, y: y.npy, normalize: {mean: 0.4, std: 0.3}}
  val: {kind: npy, x: x.npy, y: y.npy, normalize: {mean: 0.4, std: 0.3}}
train: {epochs: 1, batch_size: 10}
eval: {batch_size: 9}
checkpoint: {every: 1 epoch}
)";

constexpr int64_t kSamples = 50, kHeight = 6, kWidth = 8;

std::vector<uint8_t> pixels(int64_t channels) {
  std::vector<uint8_t> all;
  for (int64_t i = 0; i < kSamples * channels * kHeight * kWidth; ++i)
    all.push_back(static_cast<uint8_t>((i * i * 7 + i / 13) % 251));
  return all;
}

struct Trained {
  RunFolder folder{kConvNet};
  explicit Trained(int64_t channels) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < kSamples; ++i) labels.push_back(i % 4);
    write_npy(folder / "x.npy", {kSamples, channels, kHeight, kWidth}, pixels(channels));
    write_npy(folder / "y.npy", {kSamples}, labels);
    const Outcome run = folder.train("run", 2, {});
    REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  }
  // The file's bytes, which every number of ranks gives alike.
  std::string predict(const std::string& input, const std::string& output,
                      const std::vector<std::string>& more = {}) const {
    std::string expected;
    for (const int ranks : {1, 2, 3}) {
      std::vector<std::string> command{"predict", (folder / "run").string(), "--data", (folder / input).string(),
                                       "-o",      (folder / output).string()};
      command.insert(command.end(), more.begin(), more.end());
      const Outcome outcome = run_lockstep_on(ranks, command);
      REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
      CHECK(outcome.says(fmt::format("{} samples", kSamples)));
      const std::string bytes = file_text(folder / output);
      if (expected.empty()) expected = bytes;
      CHECK_MESSAGE(bytes == expected, ranks);
    }
    CHECK_FALSE(fs::exists(folder / (output + ".tmp")));
    return expected;
  }
  Outcome refused(const std::string& input) const {
    const Outcome outcome = run_lockstep_on(2, {"predict", (folder / "run").string(), "--data",
                                                (folder / input).string(), "-o", (folder / "none.csv").string()});
    CHECK(outcome.exit_code == 2);
    CHECK_FALSE(fs::exists(folder / "none.csv"));
    CHECK_FALSE(fs::exists(folder / "none.csv.tmp"));
    return outcome;
  }
};

std::vector<std::vector<std::string>> cells(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream row(line);
    rows.emplace_back();
    for (std::string cell; std::getline(row, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

void write_images(const fs::path& folder, int64_t channels) {
  fs::create_directories(folder);
  const std::vector<uint8_t> all = pixels(channels);
  const auto size = static_cast<size_t>(channels * kHeight * kWidth);
  for (int64_t i = 0; i < kSamples; ++i)
    write_png(folder / fmt::format("{:03}.png", i), channels, kHeight, kWidth,
              interleaved({all.data() + static_cast<size_t>(i) * size, size}, channels));
}

}  // namespace

TEST_CASE("predict: a table of probabilities in input order with the same bytes on 1 2 and 3 ranks") {
  const Trained trained(1);
  const auto rows = cells(trained.predict("x.npy", "out.csv"));
  REQUIRE(rows.size() == kSamples + 1);
  CHECK(fmt::format("{}", fmt::join(rows[0], ",")) ==
        "sample,class,probability,probability_0,probability_1,probability_2,probability_3");
  for (size_t row = 1; row < rows.size(); ++row) {
    REQUIRE(rows[row].size() == 7);
    CHECK(rows[row][0] == std::to_string(row - 1));
    double sum = 0, most = 0;
    for (size_t column = 3; column < 7; ++column) {
      sum += std::stod(rows[row][column]);
      most = std::max(most, std::stod(rows[row][column]));
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    CHECK(std::stod(rows[row][2]) == most);
    CHECK(std::stod(rows[row][static_cast<size_t>(3 + std::stoi(rows[row][1]))]) == most);
  }
}

TEST_CASE("predict: images say what the array of their pixels says") {
  for (const int64_t channels : {1, 3}) {
    CAPTURE(channels);
    const Trained trained(channels);
    write_images(trained.folder / "images", channels);
    std::ofstream(trained.folder / "images/notes.txt") << "not an image";
    CHECK(trained.predict("images", "images.npy") == trained.predict("x.npy", "array.npy"));
    const auto rows = cells(trained.predict("images", "images.csv", {"--scores"}));
    CHECK(rows[0][0] == "file");
    CHECK(rows[0][2] == "score");
    CHECK(rows[1][0] == "000.png");
    CHECK(rows.back()[0] == "049.png");
  }
}

TEST_CASE("predict: a npy file holds as many floats as its header says") {
  const Trained trained(1);
  const std::string bytes = trained.predict("x.npy", "out.npy", {"--scores"});
  CHECK(bytes.find("'descr': '<f4', 'fortran_order': False, 'shape': (50, 4), }") != std::string::npos);
  CHECK(bytes.size() == 128 + 50 * 4 * sizeof(float));
}

TEST_CASE("predict: a damaged image or one of another size or colour is named on all ranks and nothing is written") {
  const Trained trained(1);
  const fs::path folder = trained.folder / "images";
  write_images(folder, 1);
  const std::string whole = file_text(folder / "031.png");
  std::ofstream(folder / "031.png", std::ios::binary) << whole.substr(0, whole.size() / 2);
  CHECK(trained.refused("images").says("031.png: damaged PNG"));
  std::ofstream(folder / "031.png", std::ios::binary) << "no image at all";
  CHECK(trained.refused("images").says("031.png: is neither PNG nor JPEG"));
  write_png(folder / "031.png", 1, kHeight + 1, kWidth, std::vector<uint8_t>((kHeight + 1) * kWidth));
  CHECK(trained.refused("images").says(
      "031.png: expected a greyscale image of 8 x 6 pixels (width x height), found greyscale, 8 x 7"));
  write_png(folder / "031.png", 3, kHeight, kWidth, std::vector<uint8_t>(3 * kHeight * kWidth, 7));
  CHECK(trained.refused("images").says("found RGB, 8 x 6"));
  fs::create_directories(trained.folder / "empty");
  CHECK(trained.refused("empty").says("found no file that ends in .png"));
}

TEST_CASE("predict: a table with or without the target's column and a regression's outputs") {
  const RunFolder folder(R"(
model: {layers: [{linear: 8}, tanh, {linear: 1}]}
data: {train: {kind: csv, file: train.csv, target: y}}
train: {epochs: 1, batch_size: 5, loss: mse}
checkpoint: {every: 1 epoch}
)");
  std::ofstream with(folder / "train.csv"), without(folder / "new.csv");
  with << "a,y,b\n";
  without << "a,b\n";
  for (int i = 0; i < 20; ++i) {
    with << i << "," << 2 * i << "," << 0.1 * i << "\n";
    without << i << "," << 0.1 * i << "\n";
  }
  with.close(), without.close();
  const Outcome run = folder.train("run", 1, {});
  REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  std::string expected;
  for (const char* input : {"train.csv", "new.csv"}) {
    for (const int ranks : {1, 2}) {
      const Outcome outcome = run_lockstep_on(ranks, {"predict", (folder / "run").string(), "--data",
                                                      (folder / input).string(), "-o", (folder / "out.csv").string()});
      REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
      if (expected.empty()) expected = file_text(folder / "out.csv");
      CHECK(file_text(folder / "out.csv") == expected);
    }
  }
  CHECK(expected.starts_with("sample,output_0\n0,"));
  CHECK(cells(expected).size() == 21);
}
