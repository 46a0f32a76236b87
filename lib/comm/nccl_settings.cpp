#include "comm/nccl_settings.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

constexpr size_t longest = 160, most = 64;  // characters of a setting; settings

}  // namespace

std::string nccl_settings(const char* const* environment) {
  std::vector<std::string> found;
  for (; environment != nullptr && *environment != nullptr && found.size() < most; ++environment) {
    const std::string_view setting = *environment;
    if (!setting.starts_with("NCCL_")) continue;
    found.emplace_back(setting.substr(0, longest));
    if (setting.size() > longest) found.back() += "...";
    // It goes to a terminal and into logs.
    std::ranges::replace_if(
        found.back(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  }
  std::ranges::sort(found);
  std::string text;
  for (const std::string& setting : found) text += (text.empty() ? "" : " ") + setting;
  return text;
}

std::string nccl_settings() { return nccl_settings(environ); }

}  // namespace lockstep
