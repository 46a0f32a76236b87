// Disks that are full, limited or read-only: the system's reason is told and what was there before stays.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include "checkpoint_support.h"
#include "support/child.h"
#include "train/checkpoint/free_space.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Snapshot with_floats(int64_t step, size_t count) {
  Snapshot made = snapshot(step);
  made.tensors["model"].push_back(
      floats("large", {static_cast<int64_t>(count)}, std::vector<float>(count, static_cast<float>(step))));
  return made;
}

// A small one is written, a large one fails; what is there then, and whether it goes on.
std::string fails_between(const std::string& dir) {
  const CheckpointFolder folder(dir, {});
  folder.prepare();
  folder.write(with_floats(1, 1000), true);
  const auto before = all_files(dir);
  const std::string message = error_of([&] { folder.write(with_floats(2, 500000), true); });
  if (all_files(dir) != before || folder.newest()->step != 1) return "the old checkpoint was touched";
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().string().ends_with(".tmp")) return "something half-written is left";
  }
  folder.write(with_floats(3, 1000), false);
  return folder.newest()->step == 3 ? message : "it cannot go on";
}

constexpr const char* kNotAllowed = "SKIPPED: this machine lets nobody mount a file system";

}  // namespace

TEST_CASE("a full disk is an error that leaves the checkpoints before") {
  const TempDir dir;
  const std::string message = in_child(
      [&]() -> std::string { return mount_small_disk(dir.path(), 1 << 20) ? fails_between(dir.path()) : kNotAllowed; });
  if (message == kNotAllowed) {
    MESSAGE(message);
    return;
  }
  CHECK(has(message, "step-000000002.tmp/model.safetensors: cannot be written beyond "));
  CHECK(message.ends_with(" bytes: No space left on device (the disk is full)"));
}

TEST_CASE("a limit on file sizes is an error and not the end of the process") {
  const TempDir dir;
  const std::string message = in_child([&] {
    const rlimit limit{.rlim_cur = 100000, .rlim_max = 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    return fails_between(dir.path());
  });
  CHECK(message.ends_with("File too large (over the limit on file sizes: see ulimit -f)"));
}

TEST_CASE("a folder that cannot be written is found out at the start") {
  const TempDir dir;
  const std::string message = in_child([&]() -> std::string {
    if (!mount_small_disk(dir.path(), 1 << 20) || !make_read_only(dir.path())) return kNotAllowed;
    return error_of([&] { CheckpointFolder(dir.path() + "/checkpoints", {}).prepare(); }) + "\n" +
           error_of([&] { CheckpointFolder(dir.path(), {}).prepare(); });
  });
  if (message == kNotAllowed) {
    MESSAGE(message);
    return;
  }
  CHECK_EQ(message, dir.path() + "/checkpoints: cannot be made: Read-only file system\n" + dir.path() +
                        "/writable.tmp: cannot be made: Read-only file system");
}

TEST_CASE("the room that checkpoints need is known before") {
  const TempDir dir;
  const CheckpointFolder folder(dir.path(), {});
  const Snapshot made = with_floats(7, 100000);
  const uint64_t expected = checkpoint_bytes(made);
  folder.prepare();
  folder.write(made, false);
  uint64_t found = 0;
  for (const auto& [name, bytes] : all_files(dir.path())) found += bytes.size();
  CHECK_GE(expected, found);
  CHECK_LE(expected, found + 8 * 4096);
  CHECK_FALSE(space_shortage(dir.path() + "/not/yet/there", 1, 1).has_value());
  const std::string text = space_shortage(dir.path() + "/not/yet/there", uint64_t{1} << 60, 4).value_or("");
  CHECK(has(text, dir.path() + "/not/yet/there: 4 checkpoints of 1099511627776.0 MiB need 4398046511104.0 MiB, but its "
                               "file system has "));
  CHECK(has(text, "lower checkpoint.keep"));
  const std::string small = in_child([&]() -> std::string {
    if (!mount_small_disk(dir.path(), 1 << 20)) return kNotAllowed;
    return space_shortage(dir.path(), 600000, 1).value_or("enough") +
           space_shortage(dir.path(), 600000, 2).value_or("");
  });
  if (small != kNotAllowed) CHECK(has(small, "enough" + dir.path() + ": 2 checkpoints of 0.6 MiB need 1.1 MiB"));
}
