// Damaged files of checkpoints and configs: always what a whole one gives or an Error, never anything else.
#include "support/fuzz.h"

#include <doctest/doctest.h>

#include "checkpoint_support.h"
#include "config_support.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/state_json.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("fuzzed tensor files are read or refused") {
  fuzz("safetensors", [](const std::string& bytes) {
    const TensorFile file = TensorFile::parse(to_bytes(bytes), "f");
    size_t total = 0;
    for (const auto& [name, entry] : file.entries()) {
      total += file.bytes(entry).size();
      CHECK_EQ(file.floats(name).size() * byte_size(entry.type), entry.end - entry.begin);
    }
    CHECK_LE(total, bytes.size());
  });
}

TEST_CASE("fuzzed states are read or refused") {
  fuzz("state", [](const std::string& bytes) {
    const std::string text = to_json(parse_state(bytes, "f"));
    CHECK_EQ(to_json(parse_state(text, "f")), text);
  });
}

TEST_CASE("fuzzed manifests are read or refused") {
  fuzz("manifest", [](const std::string& bytes) {
    const Manifest manifest = parse_manifest(bytes, "f");
    CHECK_EQ(to_json(manifest), bytes);
  });
}

TEST_CASE("fuzzed configs are read or refused") {
  fuzz("config", [](const std::string& bytes) {
    const std::string printed = to_yaml(parse_config(bytes, "config.yaml", {}));
    CHECK_EQ(to_yaml(parse_config(printed, "config.yaml", {})), printed);
  });
}
