#include "data/csv_reader.h"

#include "core/error.h"

namespace lockstep {

namespace {
constexpr size_t kMaxCell = 65536, kMaxColumns = size_t{1} << 20;
}

CsvReader::CsvReader(const std::string& path) : file_(path) {
  for (int byte : {0xef, 0xbb, 0xbf}) {  // UTF-8 byte order mark, as spreadsheets write it
    if (peek() != byte) break;
    ++at_;
  }
}

std::string CsvReader::place(const CsvCell& cell) const {
  return fmt::format("{}:{}:{}", path(), cell.line, cell.column);
}

int CsvReader::peek() {
  if (at_ == end_) {
    at_ = 0;
    end_ = file_.read(buffer_);
    if (end_ == 0) return -1;
  }
  return buffer_[at_];
}

void CsvReader::skip() {
  ++column_;
  if (buffer_[at_++] == '\n') {
    ++line_;
    column_ = 1;
  }
}

CsvCell& CsvReader::start_cell() {
  if (used_ == kMaxColumns) throw_error("{}:{}: expected at most {} columns, found more", path(), line_, kMaxColumns);
  if (used_ == cells_.size()) cells_.emplace_back();
  CsvCell& cell = cells_[used_++];
  cell.text.clear();
  cell.line = line_;
  cell.column = column_;
  return cell;
}

void CsvReader::append(CsvCell& cell, int byte) {
  if (cell.text.size() == kMaxCell)
    throw_error("{}: expected a cell of at most {} bytes, found more", place(cell), kMaxCell);
  cell.text.push_back(static_cast<char>(byte));
  skip();
}

void CsvReader::read_quoted(CsvCell& cell) {
  skip();
  for (;;) {
    const int byte = peek();
    if (byte < 0) throw_error("{}: expected a closing quote, found the end of the file", place(cell));
    if (byte != '"') {
      append(cell, byte);
      continue;
    }
    skip();
    if (peek() != '"') break;
    append(cell, '"');
  }
  const int after = peek();
  if (after >= 0 && after != ',' && after != '\r' && after != '\n') {
    throw_error("{}: expected a comma or the line's end after the closing quote, found '{}'", place(cell),
                static_cast<char>(after));
  }
}

void CsvReader::read_cell() {
  CsvCell& cell = start_cell();
  if (peek() == '"') return read_quoted(cell);
  for (int byte = peek(); byte >= 0 && byte != ',' && byte != '\r' && byte != '\n'; byte = peek()) append(cell, byte);
}

std::span<const CsvCell> CsvReader::next() {
  while (peek() == '\n' || peek() == '\r') skip();
  used_ = 0;
  if (peek() < 0) return {};
  read_cell();
  while (peek() == ',') {
    skip();
    read_cell();
  }
  while (peek() == '\r') skip();
  if (peek() == '\n') skip();
  return {cells_.data(), used_};
}

}  // namespace lockstep
