// TensorBoard's event file: numbers by tag and step, in records of TFRecord's framing (length, CRC-32C, data, CRC-32C)
// that hold Event messages of tensorboard/compat/proto/event.proto. Written by hand: three small messages of protobuf's
// wire format, which do not earn its compiler and its run-time library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

uint32_t crc32c(std::string_view bytes);  // Castagnoli's polynomial

class EventFile {
 public:
  // Makes events.out.tfevents.* in `dir`. first_step: of a resumed run, whose earlier launches' files stay beside it,
  // though what they hold from there on is not shown any more; negative: a new run, those of others are removed. Throws
  // Error when it can't be written.
  EventFile(const std::string& dir, int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  using Scalars = std::vector<std::pair<std::string_view, double>>;  // by tag, "train/loss"
  void add(int64_t step, const Scalars& scalars);

 private:
  void write(const std::string& event);

  std::string path_;
  int file_ = -1;
};

}  // namespace lockstep
