#include "train/probe.h"

#include <doctest/doctest.h>

#include <numeric>

#include "core/error.h"

using namespace lockstep;

namespace {

ParameterStore small_store() {
  ParameterStore store;
  store.add_parameter("0.weight", Shape{2, 3});
  store.add_parameter("0.bias", Shape{2});
  const std::vector<ParameterId> order{1, 0};
  store.lay_out(order, Buffer::host);
  std::iota(store.value(0).begin(), store.value(0).end(), 10.0f);
  std::iota(store.gradient(0).begin(), store.gradient(0).end(), 100.0f);
  return store;
}

}  // namespace

TEST_CASE("probes read single values, gradients and checksums") {
  const ParameterStore store = small_store();
  CHECK(Probe("value:0.weight[1,2]", store).read(store) == 15);
  CHECK(Probe("gradient:0.weight[0,1]", store).read(store) == 101);
  CHECK(Probe("value:0.bias[1]", store).read(store) == 0);
  CHECK(Probe("checksum:0.weight", store).read(store) == 75);
}

TEST_CASE("a probe that names nothing says what there is") {
  const ParameterStore store = small_store();
  CHECK_THROWS_WITH(Probe("value:1.weight[0]", store),
                    "log.watch 'value:1.weight[0]': no parameter '1.weight'; there are 0.weight, 0.bias");
  CHECK_THROWS_WITH(Probe("weight:0.weight[0]", store),
                    "log.watch 'weight:0.weight[0]': expected value:NAME[i,j], gradient:NAME[i,j] or checksum:NAME");
  CHECK_THROWS_AS(Probe("value:0.weight", store), Error);
  CHECK_THROWS_AS(Probe("value:0.weight[0]", store), Error);
  CHECK_THROWS_AS(Probe("value:0.weight[0,3]", store), Error);
  CHECK_THROWS_AS(Probe("value:0.weight[0,-1]", store), Error);
  CHECK_THROWS_AS(Probe("value:0.weight[0,0,0]", store), Error);
  CHECK_THROWS_AS(Probe("value:0.weight[0,0]x", store), Error);
  CHECK_THROWS_AS(Probe("checksum:0.weight[0,0]", store), Error);
}
