// A YAML document as a plain tree that remembers where every key and value stands. Built by yaml_parse, changed by
// --set overrides, read by config_reader. Scalars stay text: the key's type decides what they mean.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// file:line:column (both from 1, columns in bytes), or "--set KEY" for a value given on the command line.
struct YamlPosition {
  std::shared_ptr<const std::string> source;
  int line = 0;  // 0: the source stands for itself
  int column = 0;
  std::string str() const;
};

struct YamlKey {
  std::string text;
  YamlPosition at;
};

struct YamlNode {
  // null: the word null or ~; empty: nothing after the colon; quoted: also block scalars (| and >).
  enum class Kind { null, empty, plain, quoted, list, map };
  Kind kind = Kind::empty;
  YamlPosition at;
  std::string text;             // plain, quoted
  std::vector<YamlKey> keys;    // map: keys[i] belongs to items[i]
  std::vector<YamlNode> items;  // list, map

  bool is_scalar() const { return kind == Kind::plain || kind == Kind::quoted; }
  // Index of a key in a map, -1 where absent.
  int find(std::string_view key) const;
  // For messages: "a list", "the text 'abc'", "nothing".
  std::string describe() const;
};

// Throws Error "POSITION: message".
[[noreturn]] void fail_at(const YamlPosition& at, const std::string& message);
// Throws Error "POSITION: PATH: message", or "--set PATH: message" where the position says the path already.
[[noreturn]] void fail_path(const YamlPosition& at, const std::string& path, const std::string& message);

}  // namespace lockstep
