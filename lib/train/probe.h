// Probes: single numbers of the replica, printed by every rank so that a reader can see that the ranks agree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "nn/parameter_store.h"

namespace lockstep {

// "value:NAME[i,j]", "gradient:NAME[i,j]" or "checksum:NAME" (sum in double). Throws Error for anything else.
class Probe {
 public:
  Probe(const std::string& text, const ParameterStore& store);
  const std::string& text() const { return text_; }
  double read(const ParameterStore& store) const;

 private:
  enum class Kind { value, gradient, checksum };
  std::string text_;
  Kind kind_ = Kind::value;
  ParameterId id_ = 0;
  int64_t element_ = 0;  // canonical, row-major
};

// Whether a probe of this text reads gradients.
bool watches_gradient(std::string_view text);

std::vector<Probe> make_probes(const std::vector<std::string>& texts, const ParameterStore& store);
// The probe's value on every rank.
std::vector<double> gather_probe(const Probe& probe, const ParameterStore& store, Communicator& communicator);

}  // namespace lockstep
