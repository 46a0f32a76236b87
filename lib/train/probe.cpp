#include "train/probe.h"

#include <charconv>

#include "comm/gather.h"
#include "core/error.h"

namespace lockstep {
namespace {

int64_t parse_element(std::string_view text, const Shape& shape, const std::string& probe) {
  int64_t element = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t index = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc() || index < 0 || index >= shape[axis])
      throw_error("log.watch '{}': index {} must be 0..{}", probe, axis, shape[axis] - 1);
    element = element * shape[axis] + index;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const char expected = axis + 1 == shape.rank() ? ']' : ',';
    if (text.empty() || text.front() != expected)
      throw_error("log.watch '{}': expected {} indices, one per axis of {}", probe, shape.rank(), shape.str());
    text.remove_prefix(1);
  }
  if (!text.empty()) throw_error("log.watch '{}': nothing may follow the indices", probe);
  return element;
}

}  // namespace

Probe::Probe(const std::string& text, const ParameterStore& store) : text_(text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (colon == std::string::npos || (kind != "value" && kind != "gradient" && kind != "checksum"))
    throw_error("log.watch '{}': expected value:NAME[i,j], gradient:NAME[i,j] or checksum:NAME", text);
  kind_ = kind == "value" ? Kind::value : kind == "gradient" ? Kind::gradient : Kind::checksum;
  const size_t bracket = text.find('[', colon);
  const std::string name = text.substr(colon + 1, bracket == std::string::npos ? bracket : bracket - colon - 1);
  id_ = store.find(name);
  if (id_ < 0) {
    std::vector<std::string> names;
    for (const Parameter& p : store.parameters()) names.push_back(p.name);
    throw_error("log.watch '{}': no parameter '{}'; there are {}", text, name, fmt::join(names, ", "));
  }
  if (kind_ == Kind::gradient && !store.parameters()[static_cast<size_t>(id_)].trainable)
    throw_error("log.watch '{}': the parameter is frozen (trainable: false) and has no gradient", text);
  if (kind_ == Kind::checksum) {
    if (bracket != std::string::npos) throw_error("log.watch '{}': a checksum takes no index", text);
    return;
  }
  if (bracket == std::string::npos) throw_error("log.watch '{}': which element? write {}[0,...]", text, name);
  element_ = parse_element(std::string_view(text).substr(bracket + 1),
                           store.parameters()[static_cast<size_t>(id_)].shape, text);
}

double Probe::read(const ParameterStore& store) const {
  const std::vector<float> canonical =
      kind_ == Kind::gradient ? store.canonical_gradient(id_) : store.canonical_value(id_);
  if (kind_ != Kind::checksum) return canonical[static_cast<size_t>(element_)];
  double sum = 0;
  for (float value : canonical) sum += value;
  return sum;
}

bool watches_gradient(std::string_view text) { return text.starts_with("gradient:"); }

std::vector<Probe> make_probes(const std::vector<std::string>& texts, const ParameterStore& store) {
  std::vector<Probe> probes;
  for (const std::string& text : texts) probes.emplace_back(text, store);
  return probes;
}

std::vector<double> gather_probe(const Probe& probe, const ParameterStore& store, Communicator& communicator) {
  const double mine = probe.read(store);
  return gather_values<double>({&mine, 1}, communicator);
}

}  // namespace lockstep
