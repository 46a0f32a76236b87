// Splits a CSV file (RFC 4180: quotes, doubled quotes, line ends within quotes; LF or CRLF) into cells that know their
// place. Reads as it goes: memory is one row, whatever the file's size. Plain or gzip.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/input_file.h"

namespace lockstep {

struct CsvCell {
  std::string text;              // without the quotes
  int64_t line = 1, column = 1;  // where it starts; column counts bytes from 1
};

class CsvReader {
 public:
  explicit CsvReader(const std::string& path);

  // The next row, valid until the next call; empty at the end of the file. Blank lines are skipped. Throws Error with
  // file:line:column: an unclosed quote, text after a closing quote, a cell over 64 KiB.
  std::span<const CsvCell> next();
  const std::string& path() const { return file_.path(); }
  std::string place(const CsvCell& cell) const;  // "file:line:column"

 private:
  int peek();  // the next byte, -1 at the end
  void skip();
  CsvCell& start_cell();
  void append(CsvCell& cell, int byte);
  void read_cell();
  void read_quoted(CsvCell& cell);

  InputFile file_;
  std::array<uint8_t, 65536> buffer_;
  size_t at_ = 0, end_ = 0;
  int64_t line_ = 1, column_ = 1;
  std::vector<CsvCell> cells_;  // kept from row to row, so that their text needs no new memory
  size_t used_ = 0;
};

}  // namespace lockstep
