// The header of an .npy file is a Python dict literal; this reads the few forms numpy writes, and nothing else.
#include <charconv>
#include <optional>

#include "core/error.h"
#include "data/npy.h"

namespace lockstep {

namespace {

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  NpyHeader parse() {
    std::optional<NpyType> type;
    std::optional<bool> fortran;
    std::optional<std::vector<int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        type = element_type();
      } else if (key == "fortran_order") {
        fortran = boolean();
      } else if (key == "shape") {
        shape = tuple();
      } else {
        throw_error("{}: npy header: expected the keys descr, fortran_order and shape, found '{}'", source_, key);
      }
      if (!accept(',') && peek() != '}') fail("',' or '}'");
    }
    if (peek() != '\0') fail("the end of the header");
    if (!type || !fortran || !shape) {
      throw_error("{}: npy header: expected the keys descr, fortran_order and shape, found {}", source_, text_);
    }
    return {*type, *fortran, std::move(*shape)};
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(std::string_view(&wanted, 1));
  }
  [[noreturn]] void fail(std::string_view expected) {
    throw_error("{}: npy header: expected {} at byte {}, found '{}'", source_, expected, at_, text_.substr(at_, 20));
  }

  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a quoted word");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quoted word");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  NpyType element_type() {
    const std::string_view descr = quoted();
    if (descr == "<f4") return NpyType::f4;
    if (descr == "<f8") return NpyType::f8;
    if (descr == "<i4") return NpyType::i4;
    if (descr == "<i8") return NpyType::i8;
    if (descr == "|u1" || descr == "<u1") return NpyType::u1;
    throw_error("{}: npy element type: expected <f4, <f8, <i4, <i8 or |u1, found {}", source_, descr);
  }

  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    expect('(');
    while (!accept(')')) {
      peek();
      int64_t dim = 0;
      const char* end = text_.data() + text_.size();
      const auto [next, error] = std::from_chars(text_.data() + at_, end, dim);
      if (error != std::errc{} || dim < 0) fail("a dimension");
      at_ = static_cast<size_t>(next - text_.data());
      if (next != end && *next == 'L') ++at_;  // Python 2 wrote 60000L
      out.push_back(dim);
      if (!accept(',') && peek() != ')') fail("',' or ')'");
    }
    return out;
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& source) {
  return HeaderParser(text, source).parse();
}

}  // namespace lockstep
