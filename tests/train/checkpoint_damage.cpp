// Any byte changed and any length cut: an error that names the file, never a crash, never other values.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "checkpoint_support.h"
#include "train/checkpoint/directory.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Written {
  TempDir dir;
  std::string path;
  std::map<std::string, std::string> files;
  Written() {
    const CheckpointFolder folder(dir.path(), {});
    folder.prepare();
    path = folder.write(snapshot(12), false);
    files = all_files(path);
  }
  std::string refusal() const {
    return error_of([&] { read_checkpoint(path); });
  }
};

}  // namespace

TEST_CASE("every byte of a checkpoint changed is an error that names the file") {
  const Written written;
  REQUIRE_EQ(written.files.size(), 5);
  REQUIRE_EQ(written.refusal(), "no error");
  for (const auto& [name, bytes] : written.files) {
    const std::string path = written.path + "/" + name;
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ (1U << (i % 8)));
      write_bytes(path, damaged);
      CAPTURE(i);
      CHECK(written.refusal().starts_with(written.path + "/"));
    }
    write_bytes(path, bytes);
  }
  CHECK_EQ(written.refusal(), "no error");
}

TEST_CASE("every file of a checkpoint cut anywhere is an error that names the file") {
  const Written written;
  for (const auto& [name, bytes] : written.files) {
    const std::string path = written.path + "/" + name;
    for (size_t length = 0; length < bytes.size(); ++length) {
      write_bytes(path, bytes.substr(0, length));
      CAPTURE(length);
      CHECK(written.refusal().starts_with(path));
    }
    write_bytes(path, bytes + '\n');
    CHECK(written.refusal().starts_with(path));
    write_bytes(path, bytes);
  }
  CHECK_EQ(written.refusal(), "no error");
}

// Without the manifest's checksum in front: the reader of the format alone.
TEST_CASE("every byte of a tensor file changed is harmless or an error") {
  const Written written;
  const std::string bytes = written.files.at("model.safetensors");
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const unsigned bit : {0U, 3U, 5U, 7U}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ (1U << bit));
      const std::string message = error_of([&] {
        const TensorFile file = TensorFile::parse(to_bytes(damaged), "f");
        for (const auto& [name, entry] : file.entries()) file.floats(name);
      });
      refused += message != "no error";
      if (message != "no error") CHECK(message.starts_with("f: "));
    }
    CHECK_NE(error_of([&] { TensorFile::parse(to_bytes(bytes.substr(0, i)), "f"); }), "no error");
  }
  CHECK_GT(refused, 500);
}

TEST_CASE("what is no regular file is refused without waiting") {
  const Written written;
  const std::string path = written.path + "/state.json";
  std::filesystem::remove(path);
  REQUIRE_EQ(mkfifo(path.c_str(), 0600), 0);
  CHECK_EQ(written.refusal(), path + ": is not a regular file");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK_EQ(written.refusal(), path + ": is not a regular file");
  CHECK_EQ(error_of([&] { read_file("/dev/zero"); }), "/dev/zero: is not a regular file");
}
