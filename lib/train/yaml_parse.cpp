// Turns yaml-cpp's events into our tree. Its own Node type is not used: that keeps both of two equal keys, forgets
// where keys stand, drops text after the first document and guesses types.
#include "train/yaml_parse.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <locale>
#include <map>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "train/config_scalar.h"
#include "train/yaml_text.h"

namespace lockstep {
namespace {

struct Size {
  size_t nodes = 1;
  size_t height = 0;
};

Size measure(const YamlNode& node) {
  Size size;
  for (const YamlNode& item : node.items) {
    const Size inner = measure(item);
    size.nodes += inner.nodes;
    size.height = std::max(size.height, inner.height + 1);
  }
  return size;
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, std::shared_ptr<const std::string> source, bool positions)
      : text_(text), source_(std::move(source)), positions_(positions) {}

  YamlPosition position(const YAML::Mark& mark) const {
    if (!positions_) return {source_, 0, 0};
    return mark.is_null() ? YamlPosition{source_, 1, 1} : YamlPosition{source_, mark.line + 1, mark.column + 1};
  }
  YamlNode take_root() { return std::move(root_); }
  const YamlPosition& start() const { return start_; }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = position(mark); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    std::string_view rest = mark.is_null() ? "" : text_.substr(std::min(text_.size(), static_cast<size_t>(mark.pos)));
    if (rest.starts_with('&')) {  // the mark is the anchor's
      rest.remove_prefix(std::min(rest.size(), rest.find_first_of(" \t\r\n")));
      rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t\r\n")));
    }
    const bool written =
        rest.starts_with('~') || rest.starts_with("null") || rest.starts_with("Null") || rest.starts_with("NULL");
    add(make(written ? YamlNode::Kind::null : YamlNode::Kind::empty, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail_at(position(mark), "the alias stands inside the value that it refers to");
    const Size size = measure(found->second);
    count(size.nodes - 1, mark);
    if (stack_.size() + size.height > kMaxYamlDepth) fail_depth(mark);
    add(found->second, 0, &mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    YamlNode node = make(tag == "!" ? YamlNode::Kind::quoted : YamlNode::Kind::plain, mark);
    node.text = value;
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    std::unordered_map<std::string, int> lines;  // map: line of each key
  };

  YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark) const {
    YamlNode node;
    node.kind = kind;
    node.at = position(mark);
    return node;
  }

  void count(size_t more, const YAML::Mark& mark) {
    nodes_ += more;
    if (nodes_ > kMaxYamlNodes) {
      fail_at(position(mark), fmt::format("more than {} values (with aliases expanded)", kMaxYamlNodes));
    }
  }
  [[noreturn]] void fail_depth(const YAML::Mark& mark) const {
    fail_at(position(mark), fmt::format("nested more than {} deep", kMaxYamlDepth));
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    fail_at(position(mark), fmt::format("the tag {} is not supported; the key decides the type", printable(tag)));
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_tag(mark, tag);
    if (!stack_.empty() && expects_key())
      fail_at(position(mark), "a key must be a word, found a list or a map (is a bracket left open?)");
    if (stack_.size() >= kMaxYamlDepth) fail_depth(mark);
    stack_.push_back(Frame{make(kind, mark), anchor, {}});
  }
  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(frame.node), frame.anchor);
  }

  bool expects_key() const {
    const YamlNode& top = stack_.back().node;
    return top.kind == YamlNode::Kind::map && top.keys.size() == top.items.size();
  }

  void add(YamlNode node, YAML::anchor_t anchor, const YAML::Mark* alias = nullptr) {
    if (++nodes_ > kMaxYamlNodes) {
      fail_at(node.at, fmt::format("more than {} values (with aliases expanded)", kMaxYamlNodes));
    }
    if (anchor != 0) anchors_[anchor] = node;
    if (stack_.empty()) {
      root_ = std::move(node);
    } else if (expects_key()) {
      add_key(node, alias != nullptr ? position(*alias) : node.at);
    } else {
      stack_.back().node.items.push_back(std::move(node));
    }
  }

  void add_key(const YamlNode& node, const YamlPosition& at) {
    if (!node.is_scalar()) fail_at(at, fmt::format("a key must be a word, found {}", node.describe()));
    if (node.text == "<<" && node.kind == YamlNode::Kind::plain) {
      fail_at(at, "merge keys (<<) are not supported; write the keys out, or give the whole value by an alias");
    }
    const auto [first, inserted] = stack_.back().lines.emplace(node.text, at.line);
    if (!inserted) {
      const std::string earlier = positions_ ? fmt::format("; first given in line {}", first->second) : "";
      fail_at(at, fmt::format("duplicate key '{}' {}{}", printable(node.text), section(), earlier));
    }
    stack_.back().node.keys.push_back({node.text, at});
  }

  // Where the innermost open map belongs: "in optimizer", "at the top level".
  std::string section() const {
    std::string path;
    for (size_t i = 0; i + 1 < stack_.size(); ++i) {
      const YamlNode& node = stack_[i].node;
      const bool is_map = node.kind == YamlNode::Kind::map;
      path += (path.empty() ? "" : ".") + (is_map ? node.keys.back().text : std::to_string(node.items.size()));
    }
    return path.empty() ? "at the top level" : "in " + printable(path);
  }

  std::string_view text_;
  std::shared_ptr<const std::string> source_;
  bool positions_;
  YamlPosition start_;
  YamlNode root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  size_t nodes_ = 0;
};

YamlNode parse(std::string_view text, const std::shared_ptr<const std::string>& source, bool positions) {
  if (text.size() > kMaxYamlBytes) {
    fail_at({source, positions ? 1 : 0, 1}, fmt::format("larger than {} bytes", kMaxYamlBytes));
  }
  check_yaml_text(text, source, positions);
  TreeBuilder builder(text, source, positions);
  try {
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      YamlNode nothing;
      nothing.at = {source, positions ? 1 : 0, 1};
      return nothing;
    }
    YamlNode root = builder.take_root();
    TreeBuilder rest(text, source, positions);
    if (parser.HandleNextDocument(rest)) {
      fail_at(rest.start(), "unexpected text after the end of the document; a config is one document");
    }
    return root;
  } catch (const YAML::Exception& error) {
    const bool open = error.msg.find("not found") != std::string::npos;
    fail_at(builder.position(error.mark), error.msg + (open ? "; is a bracket or a quote before it not closed?" : ""));
  }
}

}  // namespace

YamlNode parse_yaml(std::string_view text, const std::string& source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return parse(text, std::make_shared<const std::string>(source), true);
}

YamlNode parse_yaml_override(std::string_view value, const std::string& key) {
  const auto source = std::make_shared<const std::string>("--set " + key);
  YamlNode list = parse(fmt::format("[{}]", value), source, false);
  if (list.kind == YamlNode::Kind::list && list.items.size() == 1) return std::move(list.items[0]);
  if (list.kind == YamlNode::Kind::list && list.items.empty()) {
    YamlNode nothing;
    nothing.at = {source, 0, 0};
    return nothing;
  }
  fail_at({source, 0, 0}, fmt::format("expected one value, found '{}'; a list is written [a, b], a text with commas or "
                                      "brackets in double quotes",
                                      printable(value)));
}

}  // namespace lockstep
