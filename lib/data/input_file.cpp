#include "data/input_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/error.h"

namespace lockstep {

namespace {
constexpr uint8_t kGzipMagic0 = 0x1f, kGzipMagic1 = 0x8b;
constexpr uint64_t kMaxDeflateRatio = 1032;  // zlib's documented limit: no byte of input gives more bytes of output
constexpr size_t kGrowth = size_t{1} << 24;
}  // namespace

struct InputFile::Inflate {
  z_stream stream{};
  std::array<uint8_t, 65536> input;
  bool in_member = true;  // false: the last member is complete
  ~Inflate() { inflateEnd(&stream); }
};

void InputFile::CloseFile::operator()(std::FILE* file) const { std::fclose(file); }

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status))
    throw_error("{}: no such file; relative paths start at the folder that holds configs/ or datasets/", path_);
  if (!std::filesystem::is_regular_file(status))
    throw_error("{}: expected a regular file, found {}", path_,
                std::filesystem::is_directory(status) ? "a folder" : "something else");
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (!file_) throw_error("{}: cannot be opened: {}", path_, std::strerror(errno));
  file_size_ = std::filesystem::file_size(path_, error);
  if (error) throw_error("{}: its size cannot be read: {}", path_, error.message());
  if (file_size_ == 0) throw_error("{}: the file is empty", path_);
  std::array<uint8_t, 2> magic{};
  const size_t got = read_raw(magic);
  std::rewind(file_.get());
  if (got < 2 || magic[0] != kGzipMagic0 || magic[1] != kGzipMagic1) return;
  inflate_ = std::make_unique<Inflate>();
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&inflate_->stream, kGzipOnly) != Z_OK) throw_error("{}: zlib cannot start (out of memory)", path_);
}

InputFile::~InputFile() = default;

size_t InputFile::read_raw(std::span<uint8_t> out) {
  const size_t got = std::fread(out.data(), 1, out.size(), file_.get());
  if (got < out.size() && std::ferror(file_.get()) != 0) throw_error("{}: read error: {}", path_, std::strerror(errno));
  return got;
}

size_t InputFile::read_inflated(std::span<uint8_t> out) {
  Inflate& state = *inflate_;
  z_stream& stream = state.stream;
  size_t done = 0;
  while (done < out.size()) {
    if (stream.avail_in < 2) {  // two bytes tell whether another member follows
      if (stream.avail_in == 1) state.input[0] = *stream.next_in;
      const size_t got = read_raw(std::span(state.input).subspan(stream.avail_in));
      stream.next_in = state.input.data();
      stream.avail_in += static_cast<uInt>(got);
    }
    if (!state.in_member) {
      if (stream.avail_in == 0) break;
      if (stream.avail_in < 2 || stream.next_in[0] != kGzipMagic0 || stream.next_in[1] != kGzipMagic1) {
        throw_error("{}: expected the end of the file after the gzip data, found other bytes", path_);
      }
      inflateReset(&stream);
      state.in_member = true;
    }
    stream.next_out = out.data() + done;
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out.size() - done, kGrowth));
    const size_t before = stream.avail_out;
    const int code = inflate(&stream, Z_NO_FLUSH);
    done += before - stream.avail_out;
    if (code == Z_STREAM_END) {
      state.in_member = false;
    } else if (code == Z_BUF_ERROR) {  // no progress: the input has run out
      throw_error("{}: truncated: expected the end of the gzip data, found the end of the file after {} bytes", path_,
                  position_ + done);
    } else if (code != Z_OK) {
      throw_error("{}: corrupt gzip data after {} bytes: {}", path_, position_ + done,
                  stream.msg != nullptr ? stream.msg : zError(code));
    }
  }
  return done;
}

size_t InputFile::read(std::span<uint8_t> out) {
  const size_t got = compressed() ? read_inflated(out) : read_raw(out);
  position_ += got;
  return got;
}

void InputFile::read_exactly(std::span<uint8_t> out, std::string_view what) {
  const size_t got = read(out);
  if (got < out.size()) throw_error("{}: expected {} bytes of {}, found {}", path_, out.size(), what, got);
}

std::vector<uint8_t> InputFile::read_rest(uint64_t bytes, std::string_view what) {
  if (!compressed() && bytes != file_size_ - position_) {
    throw_error("{}: expected {} bytes of {}, found {}", path_, bytes, what, file_size_ - position_);
  }
  if (compressed() && bytes / kMaxDeflateRatio > file_size_) {
    throw_error("{}: expected {} bytes of {}, found {} compressed bytes, which can hold no more than {}", path_, bytes,
                what, file_size_, file_size_ * kMaxDeflateRatio);
  }
  std::vector<uint8_t> out;
  while (out.size() < bytes) {
    const size_t have = out.size();
    const uint64_t step = compressed() ? std::max(have, kGrowth) : bytes;
    out.resize(have + static_cast<size_t>(std::min<uint64_t>(bytes - have, step)));
    const size_t got = read(std::span(out).subspan(have));
    if (have + got < out.size()) throw_error("{}: expected {} bytes of {}, found {}", path_, bytes, what, have + got);
  }
  std::array<uint8_t, 1> excess{};  // asking for one more byte also makes zlib check the CRC
  if (read(excess) != 0) throw_error("{}: expected {} bytes of {}, found more", path_, bytes, what);
  return out;
}

uint64_t checked_product(uint64_t a, uint64_t b, std::string_view what) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > uint64_t{std::numeric_limits<int64_t>::max()}) {
    throw_error("{}: {} x {} passes 2^63", what, a, b);
  }
  return product;
}

}  // namespace lockstep
