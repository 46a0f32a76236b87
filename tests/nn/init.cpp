// Every model of golden/init.json, initialised tensor by tensor in construction order.
#include "nn/init.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "support/golden.h"

using lockstep::Generator;
using lockstep::test::differs_bits;
using lockstep::test::flat_f32;
using lockstep::test::golden;
using nlohmann::json;

namespace {

bool starts_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

int64_t numel(const json& shape) {
  int64_t product = 1;
  for (const json& dim : shape) product *= dim.get<int64_t>();
  return product;
}

// [out, in, kernel...]: everything but dimension 0. A transposed convolution's [in, out, kernel...] counts the same
// way.
int64_t fan_in_of(const json& shape) { return numel(shape) / shape[0].get<int64_t>(); }

// Draws one parameter; `fan_in` is that of the weight before it, kept for the bias.
std::vector<float> draw(Generator& generator, const std::string& model, const json& parameter, int64_t& fan_in) {
  const json& shape = parameter["shape"];
  std::vector<float> values(static_cast<size_t>(numel(shape)));
  if (starts_with(model, "embedding")) {
    generator.normal(values);
    if (model.find("padding_idx=2") != std::string::npos)
      std::fill_n(values.begin() + 2 * shape[1].get<int64_t>(), shape[1].get<int64_t>(), 0.0f);
  } else if (shape.size() > 1) {
    fan_in = fan_in_of(shape);
    lockstep::init_kaiming_uniform(generator, values, fan_in);
  } else {
    lockstep::init_bias_uniform(generator, values, fan_in);
  }
  return values;
}

// Batch norm draws nothing; its golden values (1 and 0) are not this file's subject.
bool is_batch_norm(const std::string& model, const std::string& parameter) {
  return model.find("batchnorm") != std::string::npos && starts_with(parameter, "2.");
}

}  // namespace

TEST_CASE("default initialisation equals PyTorch for every model") {
  const json models = golden("init.json")["models"];
  CHECK_EQ(models.size(), 12U);
  for (const json& model : models) {
    const std::string name = model["name"].get<std::string>();
    CAPTURE(name);
    Generator generator(model["seed"].get<uint64_t>());
    int64_t fan_in = 0;
    for (const json& parameter : model["params"]) {
      CAPTURE(parameter["name"].dump());
      if (is_batch_norm(name, parameter["name"].get<std::string>())) continue;
      const std::vector<float> values = draw(generator, name, parameter, fan_in);
      const std::vector<float> expected =
          flat_f32(parameter.contains("values") ? parameter["values"] : parameter["first8"]);
      REQUIRE_GE(values.size(), expected.size());
      CHECK_EQ(differs_bits(std::span(values).first(expected.size()), expected), "");
      double sum = 0;
      for (const float value : values) sum += value;
      CHECK(sum == doctest::Approx(parameter["sum"].get<double>()).epsilon(1e-12));
    }
    CHECK_EQ(generator.uniform_float(), static_cast<float>(model["next_rand"].get<double>()));
  }
}

TEST_CASE("a fan-in of zero is an error and draws nothing") {
  Generator generator(0);
  std::vector<float> values(3);
  CHECK_THROWS_AS(lockstep::init_kaiming_uniform(generator, values, 0), lockstep::Error);
  CHECK_THROWS_AS(lockstep::init_bias_uniform(generator, values, 0), lockstep::Error);
  CHECK_EQ(generator.words(), 0);
}
