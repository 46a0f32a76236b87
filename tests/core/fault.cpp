#include "core/fault.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>

#include "core/error.h"

using namespace lockstep;

namespace {

struct Variable {
  explicit Variable(const char* value) { setenv("LOCKSTEP_FAULT", value, 1); }
  ~Variable() { unsetenv("LOCKSTEP_FAULT"); }
};

}  // namespace

TEST_CASE("a fault happens on its rank and in its step only") {
  const Variable variable("1,step:3,throw");
  const Fault mine(1), other(0);
  CHECK_NOTHROW(mine.at_preparation());
  CHECK_NOTHROW(mine.at_step(2));
  CHECK_NOTHROW(other.at_step(3));
  CHECK_THROWS_AS(mine.at_step(3), Error);
}

TEST_CASE("every place is a place of its own") {
  const auto visit = [](const Fault& fault) {
    std::string faulty;
    const auto note = [&](const char* place, auto&& pass) {
      try {
        pass();
      } catch (const std::bad_alloc&) {
        faulty += place;
      }
    };
    note("start", [&] { fault.at_start(); });
    note("preparation", [&] { fault.at_preparation(); });
    note("step", [&] { fault.at_step(2); });
    note("forward", [&] { fault.at_forward(2); });
    note("loader", [&] { fault.at_loader(2); });
    note("save", [&] { fault.at_save(2); });
    return faulty;
  };
  for (const std::string place : {"start", "preparation", "step:2", "forward:2", "loader:2", "save:2"}) {
    const Variable variable(("1," + place + ",memory").c_str());
    CHECK_EQ(visit(Fault(1)), place.substr(0, place.find(':')));
    CHECK_EQ(visit(Fault(0)), "");
  }
}

TEST_CASE("a rank can be late with its preparation") {
  const Variable variable("0,preparation,sleep:1");
  const Fault fault(0);
  fault.at_step(0);
  const auto start = std::chrono::steady_clock::now();
  fault.at_preparation();
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::seconds(1));
}

TEST_CASE("a fault that cannot be understood is an error and not silently no fault") {
  for (const char* text : {"", "1", "1,step:3", "x,step:3,throw", "1,step,throw", "1,loader,throw", "1,start:1,throw",
                           "1,loader:x,throw", "1,save:2,memory:1", "1,,throw", "1,step:3,sleep", "1,step:3,kill:9",
                           "1,preparation:2,throw", "1,step:-1,throw", "1,step:3,sleep:1s"}) {
    const Variable variable(text);
    CHECK_THROWS_AS(Fault(0), Error);
  }
}

TEST_CASE("without the variable nothing happens") {
  const Fault fault(0);
  fault.at_preparation();
  fault.at_step(0);
}
