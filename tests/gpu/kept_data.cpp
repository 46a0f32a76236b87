// Training sets that the GPU keeps: batches made there beside the host's, and whole trainings beside those whose
// batches are copied. All to the bit.
#include <doctest/doctest.h>

#include "backend/factory.h"
#include "data/factory.h"
#include "gpu/kept_batches.h"
#include "support/training_run.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

bool same(const DatasetSettings& settings, const AugmentationSettings& augment = {}) {
  const auto gpu = make_backend("cuda", {}, {.index = 0});
  return same_batches(*gpu, *make_dataset(settings, 0), augment, 1);
}

const DatasetSettings kNumbers{
    .kind = "synthetic", .name = "normal_regression", .samples = 19, .shape = {300}, .target_width = 5};
const DatasetSettings kImages{.kind = "synthetic", .name = "random", .samples = 11, .classes = 3, .shape = {2, 6, 5}};

}  // namespace

TEST_CASE("the GPU makes batches of bytes and of numbers as the host does") {
  const TempDir dir;
  CHECK(same(byte_images(dir)));
  CHECK(same(kNumbers));
  CHECK(same(kImages));
}

TEST_CASE("the GPU draws images of bytes and of numbers as the host does") {
  const TempDir dir;
  CHECK(same(byte_images(dir), kCrops));
  CHECK(same(kImages, kCrops));
}

TEST_CASE("a training whose set the GPU keeps ends with the bits of one whose batches are copied") {
  const TempDir dir;
  const DatasetSettings images = byte_images(dir);
  const std::string yaml = fmt::format(
      "model: {{layers: [{{conv2d: {{out: 8, kernel: 3}}}}, relu, flatten, {{dropout: 0.2}}, {{linear: 13}}]}}\n"
      "data:\n"
      "  train: {{kind: idx, images: {}, labels: {}, normalize: {{mean: 0.4, std: 0.3}}}}\n"
      "  augmentation: {{crop_padding: 2, flip: 0.5}}\n"
      "train: {{epochs: 5, batch_size: 4}}\n"
      "optimizer: {{kind: sgd, lr: 0.05}}\n",
      images.images, images.labels);
  const auto digest = [&](int ranks, const std::string& data) {
    const TrainingRun run = train_text(
        yaml, ranks, {"device.kind=cuda", "device.oversubscribe=true", "device.data=" + data}, 200, GPU_PROGRAM);
    REQUIRE_MESSAGE(run.outcome.exit_code == 0, run.outcome.output);
    CHECK(run.outcome.says("training set: "));
    CHECK(run.outcome.says("training set: kept on ") == (data != "off"));
    return run.of("end").at(0)["model_sha256"].get<std::string>();
  };
  const std::string copied = digest(1, "off");
  CHECK(digest(1, "on") == copied);
  CHECK(digest(1, "auto") == copied);
  CHECK(digest(2, "on") == digest(2, "off"));
}
