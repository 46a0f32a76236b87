// SHA-256 (FIPS 180-4), to check data files against published sums.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

class Sha256 {
 public:
  void update(std::span<const uint8_t> bytes);
  std::string hex();  // the digest in 64 lower-case hexadecimal digits; the object is used up

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t length_ = 0;  // bytes so far
};

// Of a file's bytes as they lie on disk (not decompressed). Throws Error when it can't be read.
std::string sha256_of_file(const std::string& path);

}  // namespace lockstep
