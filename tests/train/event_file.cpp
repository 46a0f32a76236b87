// TensorBoard's event files: the checksum by its test vectors, the file through the tensorboard package.
#include "train/event_file.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "checkpoint_support.h"
#include "support/python.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("the checksum of event files is CRC-32C") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);  // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
}

TEST_CASE("the tensorboard package reads event files and a resumed run's take the place of what they repeat") {
  const std::string python = python_with({"tensorboard"});
  if (python.empty()) return;
  const TempDir dir;
  const std::string old = dir.path() + "/events.out.tfevents.1.other.2";
  std::ofstream(old) << "of a run before";
  {
    EventFile file(dir.path(), -1);
    CHECK_FALSE(std::filesystem::exists(old));
    for (int64_t step = 0; step < 300; step += 50)
      file.add(step, {{"train/loss", 1.0 / static_cast<double>(step + 1)}, {"train/learning_rate", 1e-3}});
    file.add(299, {{"val/accuracy", 0.75}});
  }
  const Outcome whole =
      run_process({python, LOCKSTEP_SOURCE_DIR "/tests/train/python/read_events.py", dir.path()}, 120);
  CHECK_EQ(whole.output,
           "train/learning_rate 0 50 100 150 200 250 | 0.001 0.001 0.001 0.001 0.001 0.001\n"
           "train/loss 0 50 100 150 200 250 | 1 0.0196 0.0099 0.00662 0.00498 0.00398\n"
           "val/accuracy 299 | 0.75\n");
  {
    EventFile file(dir.path(), 150);
    file.add(150, {{"train/loss", 5}});
  }
  const Outcome resumed =
      run_process({python, LOCKSTEP_SOURCE_DIR "/tests/train/python/read_events.py", dir.path()}, 120);
  CHECK_MESSAGE(resumed.says("train/loss 0 50 100 150 | 1 0.0196 0.0099 5\n"), resumed.output);
}
