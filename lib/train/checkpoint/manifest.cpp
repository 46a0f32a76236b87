#include "train/checkpoint/manifest.h"

#include "core/error.h"
#include "core/whole_number.h"
#include "train/checkpoint/json_text.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr int kDepth = 3;  // the map, the files, a file

int64_t integer(const Json& map, const char* key, const std::string& path) {
  const auto found = map.find(key);
  if (found == map.end() || !found->is_number_unsigned() || *found > uint64_t{INT64_MAX})
    throw_error("{}: expected an integer '{}'", path, key);
  return found->get<int64_t>();
}

uint32_t checksum(const Json& map, const std::string& path) {
  const auto found = map.find("crc32");
  if (found != map.end() && found->is_string()) {
    const auto& text = found->get_ref<const std::string&>();
    const auto value = whole_number<uint32_t>(text, 16);
    if (text.size() == 8 && value) return *value;
  }
  throw_error("{}: expected a 'crc32' of 8 hexadecimal digits", path);
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  std::string text = fmt::format("{{\n\"format\": {},\n\"step\": {},\n\"files\": {{", Manifest::kFormat, manifest.step);
  bool first = true;
  for (const auto& [name, sum] : manifest.files) {
    text += fmt::format("{}\n  {}: {{\"size\": {}, \"crc32\": \"{:08x}\"}}", first ? "" : ",", quoted_json(name),
                        sum.size, sum.crc);
    first = false;
  }
  text += "\n},\n";
  FileSum own;
  own.add(as_bytes(text));
  return text + fmt::format("\"crc32\": \"{:08x}\"\n}}\n", own.crc);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const Json json = parse_json(text, path, kDepth);
  if (!json.is_object()) throw_error("{}: expected a map", path);
  const int64_t format = integer(json, "format", path);
  if (format != Manifest::kFormat)
    throw_error("{}: expected checkpoint format {}, found {}: another version of lockstep wrote it", path,
                Manifest::kFormat, format);
  const auto files = json.find("files");
  if (files == json.end() || !files->is_object()) throw_error("{}: expected a map 'files'", path);
  Manifest manifest;
  manifest.step = integer(json, "step", path);
  for (const auto& [name, file] : files->items()) {
    if (!is_plain_name(name) || name == kManifestName)
      throw_error("{}: '{}' is no name of a file in a checkpoint", path, printable(name));
    if (!file.is_object()) throw_error("{}: '{}': expected size and crc32", path, name);
    manifest.files[name] = {static_cast<uint64_t>(integer(file, "size", path)), checksum(file, path)};
  }
  // Written again it must be the same text, own checksum and all.
  if (to_json(manifest) != text) throw_error("{}: was changed after it was written (its checksum differs)", path);
  return manifest;
}

}  // namespace lockstep
