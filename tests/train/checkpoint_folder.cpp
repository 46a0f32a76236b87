// A folder of checkpoints: what is written is read, what is kept, what a killed or damaged one leaves.
#include <doctest/doctest.h>

#include <algorithm>

#include "checkpoint_support.h"
#include "train/checkpoint/checkpoint_writer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace fs = std::filesystem;

namespace {

struct Folder {
  TempDir dir;
  std::string path = dir.path() + "/checkpoints";
  CheckpointFolder folder;
  explicit Folder(KeepRule keep = {}) : folder(path, keep) { folder.prepare(); }
  std::string of(int64_t step, const std::string& file = "") const {
    return fmt::format("{}/step-{:09}{}{}", path, step, file.empty() ? "" : "/", file);
  }
};

std::vector<std::string> names(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
  std::ranges::sort(found);
  return found;
}

}  // namespace

TEST_CASE("a checkpoint is read as it was written") {
  const Folder f;
  CHECK_FALSE(f.folder.newest().has_value());
  CHECK_EQ(f.folder.write(snapshot(500), false), f.of(500));
  CHECK_EQ(names(f.path), std::vector<std::string>{"last", "step-000000500"});
  CHECK_EQ(names(f.of(500)), std::vector<std::string>{"config.yaml", "manifest.json", "model.safetensors",
                                                      "optimizer.safetensors", "state.json"});
  const auto read = f.folder.newest();
  REQUIRE(read.has_value());
  CHECK_EQ(read->path, f.of(500));
  CHECK_EQ(read->step, 500);
  CHECK_EQ(read->config, snapshot(500).config);
  CHECK_EQ(read->state.values(), snapshot(500).state.values());
  CHECK_EQ(read->file("model").floats("0.weight"), std::vector<float>{500, 1, 2, 3, 4, 5});
  CHECK_EQ(read->file("model").floats("1.num_batches_tracked"), std::vector<float>{500});
  const TensorFile& optimizer = read->file("optimizer");
  double momentum[2];
  std::memcpy(momentum, optimizer.bytes(*optimizer.find("momentum")).data(), sizeof momentum);
  CHECK_EQ(momentum[1], 1e300);
  CHECK_EQ(error_of([&] { read->file("ema"); }), f.of(500) + ": holds no ema.safetensors");
}

TEST_CASE("two runs with the same state write the same bytes") {
  const Folder a, b;
  a.folder.write(snapshot(3), true);
  b.folder.write(snapshot(3), true);
  CHECK_EQ(all_files(a.path), all_files(b.path));
  CHECK_EQ(file_bytes(a.path + "/last"), "step-000000003\n");
}

TEST_CASE("a path may name a checkpoint or a pointer or a folder of them") {
  const Folder f;
  f.folder.write(snapshot(1), true);
  f.folder.write(snapshot(2), false);
  CHECK_EQ(read_checkpoint(f.of(1)).step, 1);
  CHECK_EQ(read_checkpoint(f.of(1) + "/").step, 1);
  CHECK_EQ(read_checkpoint(f.path + "/best").step, 1);
  CHECK_EQ(read_checkpoint(f.path + "/last").step, 2);
  CHECK_EQ(read_checkpoint(f.path).step, 2);
  CHECK_EQ(read_checkpoint(f.dir.path()).step, 2);
  fs::rename(f.of(1), f.dir.path() + "/mine");
  CHECK_EQ(read_checkpoint(f.dir.path() + "/mine").step, 1);
  CHECK_EQ(error_of([&] { read_checkpoint(f.path + "/best"); }), f.of(1) + ": is missing");
  CHECK_EQ(error_of([&] { read_checkpoint(f.path + "/none"); }), f.path + "/none: is missing");
  fs::create_directory(f.dir.path() + "/empty");
  CHECK_EQ(error_of([&] { read_checkpoint(f.dir.path() + "/empty"); }), f.dir.path() + "/empty: holds no checkpoint");
  write_bytes(f.path + "/best", "../mine\n");
  CHECK_EQ(error_of([&] { read_checkpoint(f.path + "/best"); }),
           f.path + "/best: does not hold the name of a checkpoint");
}

TEST_CASE("the newest of the rule stay and those that last and best name") {
  const Folder f({.last = 2, .every = 4, .best = true});
  for (int64_t step = 1; step <= 9; ++step) f.folder.write(snapshot(step), step == 3);
  CHECK_EQ(f.folder.steps(), std::vector<int64_t>{3, 4, 8, 9});
  CHECK_EQ(names(f.path), std::vector<std::string>{"best", "last", "step-000000003", "step-000000004", "step-000000008",
                                                   "step-000000009"});
  CHECK_EQ(read_checkpoint(f.path + "/best").step, 3);
  // From an earlier checkpoint anew: its successors are older than what is there, and `last` names them still.
  f.folder.write(snapshot(5), false);
  CHECK_EQ(read_checkpoint(f.path + "/last").step, 5);
  CHECK_EQ(f.folder.steps(), std::vector<int64_t>{3, 4, 5, 8, 9});
}

TEST_CASE("without keep_best no best is named") {
  const Folder f({.last = 1, .every = 0, .best = false});
  f.folder.write(snapshot(1), true);
  f.folder.write(snapshot(2), false);
  CHECK_EQ(names(f.path), std::vector<std::string>{"last", "step-000000002"});
}

TEST_CASE("a step may be written anew") {
  const Folder f;
  f.folder.write(snapshot(5), false);
  Snapshot other = snapshot(5);
  other.config = "other\n";
  f.folder.write(other, false);
  CHECK_EQ(f.folder.newest()->config, "other\n");
  CHECK_EQ(names(f.path), std::vector<std::string>{"last", "step-000000005"});
}

TEST_CASE("prepare removes what killed writers left and nothing else") {
  const Folder f;
  f.folder.write(snapshot(5), false);
  for (const char* name :
       {"step-000000006.tmp", "step-000000004.gone", "step-000000005.old", "mine.tmp", "step-7.tmp"}) {
    fs::create_directory(f.path + "/" + name);
    write_bytes(f.path + "/" + name + "/file", "x");
  }
  write_bytes(f.path + "/last.tmp", "step");
  fs::copy(f.of(5), f.of(3) + ".old", fs::copy_options::recursive);  // of a replacement that was not finished
  f.folder.prepare();
  CHECK_EQ(names(f.path),
           std::vector<std::string>{"last", "mine.tmp", "step-000000003", "step-000000005", "step-7.tmp"});
}

TEST_CASE("a growing directory of another writer is an error") {
  const Folder f;
  fs::create_directory(f.of(5) + ".tmp");
  CHECK(has(error_of([&] { f.folder.write(snapshot(5), false); }), "cannot be made: File exists"));
}

TEST_CASE("a damaged newest checkpoint falls back to the one before") {
  const Folder f;
  for (const int64_t step : {1, 2, 3}) f.folder.write(snapshot(step), false);
  write_bytes(f.of(3, "model.safetensors"), "short");
  fs::remove(f.of(2, "manifest.json"));
  CHECK_EQ(f.folder.newest()->step, 1);
  CHECK_EQ(f.folder.steps(), std::vector<int64_t>{1, 3});
  write_bytes(f.of(1, "state.json"), "{}");
  const std::string message = error_of([&] { f.folder.newest(); });
  CHECK(has(message, "holds no whole checkpoint"));
  CHECK(has(message, f.of(1, "state.json") + ": expected"));
  CHECK(has(message, f.of(2, "manifest.json") + ": is missing"));
  CHECK(has(message, f.of(3, "model.safetensors") + ": expected"));
}

TEST_CASE("files too many or missing or of another step are errors") {
  const Folder f;
  f.folder.write(snapshot(1), false);
  const auto refused = [&] { return error_of([&] { read_checkpoint(f.of(1)); }); };
  write_bytes(f.of(1, "extra.bin"), "x");
  CHECK_EQ(refused(), f.of(1) + ": holds 'extra.bin', which is not in its manifest");
  fs::remove(f.of(1, "extra.bin"));
  CHECK_EQ(refused(), "no error");
  fs::rename(f.of(1), f.of(2));
  CHECK_EQ(error_of([&] { read_checkpoint(f.of(2)); }), f.of(2) + ": its manifest is of step 1");
  fs::rename(f.of(2), f.of(1));
  fs::remove(f.of(1, "config.yaml"));
  CHECK_EQ(refused(), f.of(1, "config.yaml") + ": is missing");
}

TEST_CASE("links are not followed") {
  const Folder f;
  f.folder.write(snapshot(1), false);
  f.folder.write(snapshot(2), false);
  const std::string outside = f.dir.path() + "/outside";
  fs::rename(f.of(2, "state.json"), outside);
  fs::create_symlink(outside, f.of(2, "state.json"));
  CHECK_EQ(error_of([&] { read_checkpoint(f.of(2)); }),
           f.of(2, "state.json") + ": is a link, which is not followed here");
  fs::remove_all(f.of(2));
  fs::create_directory_symlink(f.of(1), f.of(2));
  CHECK_EQ(f.folder.steps(), std::vector<int64_t>{1});
  CHECK_EQ(f.folder.newest()->step, 1);
  fs::remove(f.of(2));
  // Removal goes through no link either.
  fs::create_directory(f.of(3) + ".tmp");
  fs::create_directory_symlink(f.of(1), f.of(3) + ".tmp/link");
  f.folder.prepare();
  CHECK_EQ(read_checkpoint(f.of(1)).step, 1);
}

TEST_CASE("the writer writes beside its caller and keeps what went wrong") {
  const Folder f;
  for (const bool background : {true, false}) {
    CheckpointWriter writer(f.folder, background);
    writer.write(snapshot(1), false);
    writer.write(snapshot(2), true);
    writer.wait();
    CHECK_FALSE(writer.take_failure().has_value());
    CHECK_EQ(f.folder.steps(), std::vector<int64_t>{1, 2});
    Snapshot bad = snapshot(3);
    bad.tensors["model"].push_back(bad.tensors["model"].front());
    writer.write(std::move(bad), false);
    writer.wait();
    CHECK_EQ(writer.take_failure(), "the checkpoint of step 3 was not written: two tensors are named '0.weight'");
    CHECK_FALSE(writer.take_failure().has_value());
    CHECK_EQ(names(f.path), std::vector<std::string>{"best", "last", "step-000000001", "step-000000002"});
  }
}
