// State through JSON: the same types and bits, the same bytes for the same state, everything else refused.
#include <doctest/doctest.h>

#include <bit>
#include <cfenv>
#include <limits>

#include "checkpoint_support.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/state_json.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string refusal(const std::string& text) {
  return error_of([&] { parse_state(text, "f"); });
}

}  // namespace

TEST_CASE("every value of a state comes back with its type and bits") {
  State state;
  state.set("flag", true);
  state.set("zero", int64_t{0});
  state.set("least", std::numeric_limits<int64_t>::min());
  state.set("most", std::numeric_limits<int64_t>::max());
  state.set("text", std::string("a \"b\" \\ \n \xC3\xA4 \x01"));
  state.set("empty", std::string());
  state.set("integers", std::vector<int64_t>{1, -2, std::numeric_limits<int64_t>::max()});
  state.set("none", std::vector<int64_t>{});
  state.set("no reals", std::vector<double>{});
  CHECK_EQ(parse_state(to_json(state), "f").values(), state.values());
}

TEST_CASE("reals come back to the bit and stay reals") {
  using Limits = std::numeric_limits<double>;
  std::vector<double> reals{0.0,      -0.0,
                            1,        -3,
                            0.1,      1e22,
                            1e23,     Limits::max(),
                            1e-7,     Limits::min(),
                            5e-324,   Limits::infinity(),
                            1e16,     -Limits::max(),
                            2.5e-310, -Limits::infinity(),
                            1e15,     Limits::quiet_NaN(),
                            1.0 / 3,  std::bit_cast<double>(0xfff0dead0000beefULL)};
  State state;
  for (size_t i = 0; i < reals.size(); ++i) state.set(std::to_string(i), reals[i]);
  state.set("all", reals);
  const std::string text = to_json(state);
  const State back = parse_state(text, "f");
  CHECK_EQ(to_json(back), text);
  for (size_t i = 0; i < reals.size(); ++i) {
    CAPTURE(reals[i]);
    CHECK_EQ(std::bit_cast<uint64_t>(back.real(std::to_string(i))), std::bit_cast<uint64_t>(reals[i]));
    CHECK_EQ(std::bit_cast<uint64_t>(back.reals("all")[i]), std::bit_cast<uint64_t>(reals[i]));
  }
}

TEST_CASE("the text of a state is readable and sorted") {
  State state;
  state.set("b", 1.0);
  state.set("a", int64_t{1});
  state.set("nan", std::bit_cast<double>(uint64_t{0x7ff8000000000000}));
  state.set("list", std::vector<double>{0.5, std::numeric_limits<double>::infinity()});
  CHECK_EQ(to_json(state),
           "{\n\"a\": 1,\n\"b\": 1.0,\n\"list\": {\"reals\": [0.5, \"7ff0000000000000\"]},\n"
           "\"nan\": {\"bits\": \"7ff8000000000000\"}\n}\n");
  CHECK_EQ(to_json(State()), "{\n}\n");
}

TEST_CASE("texts that are no state") {
  for (const char* text : {"",
                           "[]",
                           "1",
                           "{",
                           "{}x",
                           "{\"a\":null}",
                           "{\"a\":[1]}",
                           "{\"a\":{}}",
                           "{\"a\":{\"x\":1}}",
                           "{\"a\":{\"integers\":[1.0]}}",
                           "{\"a\":{\"integers\":[9223372036854775808]}}",
                           "{\"a\":{\"integers\":1}}",
                           "{\"a\":{\"reals\":[1]}}",
                           "{\"a\":{\"reals\":[\"nan\"]}}",
                           "{\"a\":{\"bits\":\"7ff8\"}}",
                           "{\"a\":{\"bits\":1}}",
                           "{\"a\":{\"bits\":\"7ff800000000000g\"}}",
                           "{\"a\":{\"bits\":\"-ff8000000000000\"}}",
                           "{\"a\":1e999}",
                           "{\"a\":{\"integers\":[1],\"reals\":[]}}",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":1}{\"b\":1}"}) {
    CAPTURE(text);
    CHECK(refusal(text).starts_with("f: "));
  }
  CHECK_EQ(refusal("{\"a\":1,\"a\":2}"), "f: the key 'a' is there twice");
  CHECK_EQ(refusal("{\"a\":{\"integers\":[[1]]}}"), "f: maps or lists more than 3 deep");
  CHECK_EQ(refusal(std::string(100000, '[')), "f: maps or lists more than 3 deep");
  CHECK_EQ(refusal("{\"a\":9223372036854775808}"), "f: 'a': expected an integer of 64 bits");
  State state;
  state.set("a", std::string("\xff"));
  CHECK(has(error_of([&] { to_json(state); }), "is not UTF-8"));
}

TEST_CASE("a manifest is read as it was written and not otherwise") {
  Manifest manifest{.step = 7, .files = {{"model.safetensors", {.size = 3, .crc = 0x12}}, {"state.json", {}}}};
  const std::string text = to_json(manifest);
  const Manifest back = parse_manifest(text, "f");
  CHECK_EQ(back.step, 7);
  CHECK(back.files == manifest.files);
  for (size_t i = 0; i < text.size(); ++i) {
    for (const unsigned bit : {1U, 2U, 32U, 128U}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ bit);
      CHECK_NE(error_of([&] { parse_manifest(damaged, "f"); }), "no error");
    }
    CHECK_NE(error_of([&] { parse_manifest(text.substr(0, i), "f"); }), "no error");
  }
  for (const char* name : {"../x", "/etc/passwd", "a/b", "..", ".", "", ".x", "manifest.json", "a b"}) {
    CAPTURE(name);
    const Manifest bad{.step = 7, .files = {{name, {}}}};
    CHECK(has(error_of([&] { parse_manifest(to_json(bad), "f"); }), "is no name of a file in a checkpoint"));
  }
  std::string newer = text;
  newer.replace(newer.find("\"format\": 1"), 11, "\"format\": 2");
  CHECK_EQ(error_of([&] { parse_manifest(newer, "f"); }),
           "f: expected checkpoint format 1, found 2: another version of lockstep wrote it");
}
