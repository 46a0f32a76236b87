// Small configs as text, and the message that a wrong one gives.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "train/config.h"

namespace lockstep::test {

// Two valid lines (model, data), then `sections` from line 3 on.
inline std::string with_sections(const std::string& sections) {
  return "model: {layers: [{linear: 2}]}\ndata: {train: {kind: toy}}\n" + sections;
}

inline Config parse(const std::string& sections, const std::vector<std::string>& overrides = {}) {
  return parse_config(with_sections(sections), "config.yaml", overrides);
}

inline std::string message(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "config.yaml", overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// The message for a valid config with more sections, which start in line 3.
inline std::string refusal(const std::string& sections, const std::vector<std::string>& overrides = {}) {
  return message(with_sections(sections), overrides);
}

}  // namespace lockstep::test
