// SHA-256 against the examples of FIPS 180-4.
#include "data/sha256.h"

#include <doctest/doctest.h>

#include <string_view>

using lockstep::Sha256;

namespace {

std::string sum(std::string_view text, size_t piece) {
  Sha256 sha;
  for (size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    sha.update({reinterpret_cast<const uint8_t*>(part.data()), part.size()});
  }
  return sha.hex();
}

}  // namespace

TEST_CASE("sha256 of the standard's examples") {
  CHECK_EQ(sum("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_EQ(sum("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_EQ(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK_EQ(sum(std::string(1000000, 'a'), 999), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 doesn't depend on how the bytes arrive") {
  const std::string text(200, 'q');
  for (size_t piece = 1; piece < 200; piece += 7) CHECK_EQ(sum(text, piece), sum(text, 200));
}
