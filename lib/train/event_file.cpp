#include "train/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = value;
  }
  return table;
}();

template <class T>
void append_bits(std::string& text, T value) {  // little-endian, as this machine
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// As TFRecord stores it: rotated, and a constant added, so that a checksum of checksums differs.
void append_checksum(std::string& text, std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  append_bits(text, ((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}

// Protobuf: a field's number and wire type, then its value.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& text, uint64_t value) {
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  text += static_cast<char>(value);
}
void append_field(std::string& text, uint32_t number, Wire wire) { append_varint(text, number << 3 | wire); }
void append_bytes(std::string& text, uint32_t number, std::string_view bytes) {
  append_field(text, number, kBytes);
  append_varint(text, bytes.size());
  text += bytes;
}

void remove_event_files(const std::string& dir) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(dir, ignored)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      std::filesystem::remove(entry.path(), ignored);
  }
}

// Event: wall_time = 1 (double), step = 2 (int64), file_version = 3, summary = 5, session_log = 7.
std::string event_at(int64_t step) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  append_field(event, 1, kFixed64);
  append_bits(event, std::chrono::duration<double>(now).count());
  append_field(event, 2, kVarint);
  append_varint(event, static_cast<uint64_t>(step));
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = kCrcTable[(crc ^ static_cast<uint8_t>(byte)) & 255] ^ (crc >> 8);
  return ~crc;
}

EventFile::EventFile(const std::string& dir, int64_t first_step) {
  if (first_step < 0) remove_event_files(dir);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  path_ = fmt::format("{}/events.out.tfevents.{}.{}.{}", dir,
                      std::chrono::duration_cast<std::chrono::seconds>(now).count(), host, getpid());
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) throw_error("{}: cannot be written: {}", path_, std::strerror(errno));
  std::string version = event_at(0);
  append_bytes(version, 3, "brain.Event:2");
  write(version);
  if (first_step < 0) return;
  std::string start;  // SessionLog: status = 1, START = 1
  append_field(start, 1, kVarint);
  append_varint(start, 1);
  std::string event = event_at(first_step);
  append_bytes(event, 7, start);
  write(event);
}

EventFile::~EventFile() { close(file_); }

void EventFile::add(int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {  // Summary: value = 1; Value: tag = 1, simple_value = 2 (float)
    std::string value;
    append_bytes(value, 1, tag);
    append_field(value, 2, kFixed32);
    append_bits(value, static_cast<float>(number));
    append_bytes(summary, 1, value);
  }
  std::string event = event_at(step);
  append_bytes(event, 5, summary);
  write(event);
}

// One write per record: it is there whole or not at all, even after a kill.
void EventFile::write(const std::string& event) {
  std::string record;
  append_bits(record, static_cast<uint64_t>(event.size()));
  append_checksum(record, record);
  record += event;
  append_checksum(record, event);
  if (::write(file_, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
    throw_error("{}: write failed: {}", path_, std::strerror(errno));
}

}  // namespace lockstep
