#include "support/fuzz.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "core/error.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

// What has a meaning in one of the formats, or is at the edge of a type.
const std::vector<std::string> kPieces{"{",
                                       "}",
                                       "[",
                                       "]",
                                       ":",
                                       ",",
                                       "\"",
                                       "'",
                                       "\\",
                                       "\n",
                                       "\r\n",
                                       " ",
                                       "\t",
                                       "-",
                                       "0",
                                       "1e999",
                                       "-1",
                                       "null",
                                       "true",
                                       "\\u0000",
                                       "9223372036854775807",
                                       "18446744073709551616",
                                       "4294967296",
                                       "2147483648",
                                       "__metadata__",
                                       "\"shape\":[",
                                       "\"data_offsets\":[",
                                       "(",
                                       ")",
                                       "<f8",
                                       "\xff",
                                       "\xC3\xA4",
                                       std::string(1, '\0'),
                                       std::string(8, '\0'),
                                       std::string(4, '\xff'),
                                       std::string(8, '\xff'),
                                       std::string("\0\0\0\x80", 4),
                                       std::string("\x7f\xff\xff\xff", 4),
                                       std::string("\0\0\0\0\0\0\0\x80", 8)};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : engine_(seed) {}

  std::string damaged(const std::vector<std::string>& corpus) {
    std::string bytes = corpus[below(corpus.size())];
    for (size_t edits = 1 + below(4); edits > 0; --edits) edit(bytes, corpus[below(corpus.size())]);
    return bytes;
  }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(engine_); }

  void edit(std::string& bytes, const std::string& other) {
    const size_t at = below(bytes.size() + 1);
    const std::string& piece = kPieces[below(kPieces.size())];
    switch (below(9)) {
      case 0: bytes.erase(at, 1 + below(16)); break;
      case 1: bytes.insert(at, piece); break;
      case 2: bytes.replace(at, piece.size(), piece); break;
      case 3: bytes.insert(at, bytes.substr(below(bytes.size() + 1), 1 + below(60))); break;
      case 4: bytes.resize(at); break;
      case 5: bytes.replace(at, std::string::npos, other, std::min(at, other.size())); break;
      case 6: bytes.insert(at, std::string(1 + below(2000), static_cast<char>(below(256)))); break;
      default:  // most often just a bit
        if (at < bytes.size()) bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << below(8)));
    }
  }

  std::mt19937_64 engine_;
};

std::vector<std::string> read_corpus(const std::string& name) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(LOCKSTEP_SOURCE_DIR "/tests/corpus") / name))
    paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> corpus;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

void try_one(const std::string& bytes, const std::function<void(const std::string&)>& read, FuzzCount& count) {
  try {
    read(bytes);
    ++count.accepted;
  } catch (const Error&) {
    ++count.refused;
  } catch (const std::exception& error) {
    FAIL("not an Error: " << error.what() << "; found with the bytes " << hex(bytes));
  }
}

}  // namespace

FuzzCount fuzz(const std::string& name, const std::function<void(const std::string& bytes)>& read) {
  const std::vector<std::string> corpus = read_corpus(name);
  REQUIRE_FALSE(corpus.empty());
  FuzzCount count;
  for (const std::string& bytes : corpus) try_one(bytes, read, count);
  const char* seed = std::getenv("LOCKSTEP_FUZZ_SEED");
  Mutator mutator(seed == nullptr ? 20261130 : std::strtoull(seed, nullptr, 10));
  const std::chrono::seconds duration(std::getenv("LOCKSTEP_LONG_TESTS") != nullptr ? 60 : 1);
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) try_one(mutator.damaged(corpus), read, count);
  MESSAGE(name << ": " << count.accepted << " accepted, " << count.refused << " refused");
  CHECK_GT(count.accepted, 0);  // neither harmless nor all fatal
  CHECK_GT(count.refused, 0);
  return count;
}

}  // namespace lockstep::test
