// yaml-cpp replaces broken UTF-8 by question marks, takes byte 4 for the end of the file and reports tabs at odd
// places; so these are found here, with their position.
#include "train/yaml_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "train/yaml_node.h"

namespace lockstep {
namespace {

// Length of the UTF-8 sequence at `at`, 0 if it is none (overlong forms, surrogates and values over 10FFFF are none).
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint32_t { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const uint32_t first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  uint32_t code = first & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (byte(at + i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

// A tab among the blanks in front of a line's first character, unless the line is blank or a comment.
bool is_tab_indentation(std::string_view text, size_t at) {
  const size_t next = text.find_first_not_of(" \t", at);
  return next != std::string_view::npos && text[next] != '\n' && text[next] != '\r' && text[next] != '#';
}

}  // namespace

void check_yaml_text(std::string_view text, const std::shared_ptr<const std::string>& source, bool positions) {
  YamlPosition at{source, positions ? 1 : 0, 1};
  bool indentation = positions;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\t' && indentation && is_tab_indentation(text, i)) fail_at(at, "tab in the indentation; use spaces");
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f) {
      fail_at(at, fmt::format("control character 0x{:02x}; a config is plain text", static_cast<unsigned>(c)));
    }
    const size_t length = utf8_length(text, i);
    if (length == 0) {
      fail_at(at, fmt::format("byte 0x{:02x} is not UTF-8; save the file as UTF-8",
                              static_cast<unsigned>(static_cast<unsigned char>(c))));
    }
    if (c != ' ' && c != '\t') indentation = false;
    i += length;
    at.column += static_cast<int>(length);
    if (c == '\n') {
      at.line += positions ? 1 : 0;
      at.column = 1;
      indentation = positions;
    }
  }
}

}  // namespace lockstep
