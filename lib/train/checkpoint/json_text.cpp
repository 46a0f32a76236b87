#include "train/checkpoint/json_text.h"

#include <set>
#include <vector>

#include "core/error.h"
#include "train/config_scalar.h"

namespace lockstep {

using Json = nlohmann::json;

Json parse_json(std::string_view text, const std::string& path, int most_deep) {
  std::vector<std::set<std::string>> open_maps;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= most_deep)
      throw_error("{}: maps or lists more than {} deep", path, most_deep);
    if (event == Event::object_start) open_maps.emplace_back();
    if (event == Event::object_end) open_maps.pop_back();
    if (event == Event::key && !open_maps.back().insert(parsed.get<std::string>()).second)
      throw_error("{}: the key '{}' is there twice", path, printable(parsed.get<std::string>()));
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    throw_error("{}: is no JSON: {}", path, printable(error.what()));
  }
}

std::string quoted_json(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw_error("the text '{}' is not UTF-8", printable(text));
  }
}

}  // namespace lockstep
