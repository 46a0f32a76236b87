// Which of NCCL's settings a run names.
#include "comm/nccl_settings.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("settings of NCCL are those of its variables in the order of their names") {
  const char* environment[] = {"PATH=/bin", "NCCL_IB_DISABLE=1", "MY_NCCL_DEBUG=3", "NCCL_DEBUG=INFO", nullptr};
  CHECK(nccl_settings(environment) == "NCCL_DEBUG=INFO NCCL_IB_DISABLE=1");
}

TEST_CASE("no setting of NCCL is an empty text") {
  const char* environment[] = {"PATH=/bin", nullptr};
  CHECK(nccl_settings(environment).empty());
  CHECK(nccl_settings(nullptr).empty());
}

TEST_CASE("a setting of NCCL fits into a line whatever it holds") {
  const std::string longest = "NCCL_X=" + std::string(5000, 'x');
  const char* environment[] = {longest.c_str(), "NCCL_Y=a\nb\x1b[31m", nullptr};
  const std::string text = nccl_settings(environment);
  CHECK(text.size() < 200);
  CHECK(text.find("x... NCCL_Y=a?b?[31m") != std::string::npos);
}
