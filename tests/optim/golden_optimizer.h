// The cases of golden/optim.json as settings.
#pragma once

#include <cctype>
#include <string>

#include "core/error.h"
#include "optim/settings.h"
#include "support/golden.h"

namespace lockstep::test {

inline OptimizerSettings optimizer_settings(const nlohmann::json& test_case) {
  OptimizerSettings s;
  for (const char c : test_case["optimizer"].get<std::string>()) s.kind += static_cast<char>(std::tolower(c));
  s.kind.erase(0, 3);  // the default's "sgd"
  for (const auto& [key, value] : test_case["settings"].items()) {
    if (key == "lr")
      s.lr = value.get<double>();
    else if (key == "weight_decay")
      s.weight_decay = value.get<double>();
    else if (key == "eps")
      s.eps = value.get<double>();
    else if (key == "momentum")
      s.momentum = value;
    else if (key == "dampening")
      s.dampening = value;
    else if (key == "nesterov")
      s.nesterov = value;
    else if (key == "maximize")
      s.maximize = value;
    else if (key == "amsgrad")
      s.amsgrad = value;
    else if (key == "centered")
      s.centered = value;
    else if (key == "betas")
      s.beta1 = value[0], s.beta2 = value[1];
    else if (key == "rho")
      s.rho = value;
    else if (key == "alpha")
      s.alpha = value;
    else if (key == "lr_decay")
      s.lr_decay = value;
    else if (key == "initial_accumulator_value")
      s.initial_accumulator_value = value;
    else
      throw_error("the test does not know the setting {}", key);
  }
  return s;
}

}  // namespace lockstep::test
