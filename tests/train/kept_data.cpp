// Where the training set lies: one answer for all ranks, with its reason, from a table of what they have.
#include "train/kept_data.h"

#include <doctest/doctest.h>

#include "core/error.h"

using namespace lockstep;

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30, kMiB = uint64_t{1} << 20;

DeviceConfig device(const std::string& data, std::optional<int64_t> most_mb = std::nullopt) {
  DeviceConfig config;
  config.data = data;
  config.data_mb = most_mb;
  return config;
}

std::vector<KeepFacts> ranks(std::initializer_list<KeepFacts> all) { return all; }

std::string refused(const DeviceConfig& config, const std::vector<KeepFacts>& facts) {
  try {
    decide_keep(config, facts);
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("a training set is kept where it takes a quarter of the free memory at most") {
  const KeepDecision kept = decide_keep(device("auto"), ranks({{"a", 8 * kGiB, 2 * kGiB}}));
  CHECK(kept.keep);
  CHECK(kept.text ==
        "training set: kept on the GPU, 2.00 GiB as stored, of 8.00 GiB that are free (device.data: auto)");
  const KeepDecision copied = decide_keep(device("auto"), ranks({{"a", 8 * kGiB, 2 * kGiB + 1}}));
  CHECK_FALSE(copied.keep);
  CHECK(copied.text ==
        "training set: on the host, batches are copied: it takes 2.00 GiB as stored, more than 1/4 of the 8.00 GiB "
        "that are free on the GPU (device.data: auto)");
  CHECK(decide_keep(device("on"), ranks({{"a", 8 * kGiB, 8 * kGiB}})).keep);
}

TEST_CASE("the rank with the least room decides for all where the training set lies") {
  const auto facts = ranks({{"a", 8 * kGiB, kGiB}, {"b", 3 * kGiB, kGiB}, {"c", 8 * kGiB, kGiB}});
  const KeepDecision copied = decide_keep(device("auto"), facts);
  CHECK_FALSE(copied.keep);
  CHECK(copied.text ==
        "training set: on the host, batches are copied: it takes 1.00 GiB as stored, more than 1/4 of the 3.00 GiB "
        "that are free on the GPU of rank 1 (device.data: auto)");
  const KeepDecision kept = decide_keep(device("on"), facts);
  CHECK(kept.keep);
  CHECK(kept.text ==
        "training set: kept on every rank's GPU, 1.00 GiB as stored, of 3.00 GiB that are free (device.data: on)");
}

TEST_CASE("ranks that share a GPU share its memory for their training sets") {
  CHECK(decide_keep(device("auto"), ranks({{"a", 8 * kGiB, kGiB}, {"a", 8 * kGiB, kGiB}})).keep);
  CHECK(refused(device("on"), ranks({{"a", 8 * kGiB, 5 * kGiB}, {"a", 8 * kGiB, 5 * kGiB}})) ==
        "device.data on: the training set can't be kept on the GPU: it takes 5.00 GiB as stored, more than the 8.00 "
        "GiB that are free on the GPU of rank 0, which 2 ranks share: write device.data: auto or off");
}

TEST_CASE("device.data_mb bounds what a training set may take") {
  const auto facts = ranks({{"a", 8 * kGiB, 11 * kMiB}});
  CHECK(decide_keep(device("auto", 11), facts).keep);
  CHECK(decide_keep(device("auto", 10), facts).text ==
        "training set: on the host, batches are copied: it takes 11.0 MiB as stored, more than device.data_mb: 10 "
        "(device.data: auto)");
  CHECK(refused(device("on", 10), facts).find("more than device.data_mb: 10: write") != std::string::npos);
}

TEST_CASE("a training set that lies nowhere and one that is told to stay are not kept") {
  const auto made = ranks({{"a", 8 * kGiB, 0}});
  CHECK_FALSE(decide_keep(device("auto"), made).keep);
  CHECK(refused(device("on"), made).find("it makes its samples when they are asked for") != std::string::npos);
  const KeepDecision off = decide_keep(device("off"), ranks({{"a", 8 * kGiB, 1}}));
  CHECK_FALSE(off.keep);
  CHECK(off.text == "training set: on the host, batches are copied (device.data: off)");
}

TEST_CASE("a CPU keeps nothing and says nothing of it unless it is asked to") {
  for (const char* data : {"auto", "off"}) {
    CHECK_FALSE(decide_keep(device(data), {}).keep);
    CHECK(decide_keep(device(data), {}).text == "");
  }
  CHECK(refused(device("on"), {}) ==
        "device.data on: the run is on a CPU, which reads the training set where it is: write device.data: auto, or "
        "device.kind: cuda");
}
