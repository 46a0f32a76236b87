// Small configs as text, and the message that a wrong one gives.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
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

// A page of docs/ is what the program makes of its tables; rewrites it where LOCKSTEP_UPDATE_DOCS is set.
inline void check_page(const std::string& name, const std::string& made) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/" + name;
  if (std::getenv("LOCKSTEP_UPDATE_DOCS") != nullptr) std::ofstream(path) << made;
  std::ifstream file(path);
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const bool same = page == made;
  CHECK_MESSAGE(same, name, " is out of date: run unit_train with LOCKSTEP_UPDATE_DOCS=1");
}

}  // namespace lockstep::test
