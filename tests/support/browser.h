// A page in a headless browser, with a script of the test's own that looks at it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::test {

// The browser's executable; empty, with "SKIPPED: why" printed, where there is none.
std::string browser_or_skip();

struct PageLook {
  int width = 1200;
  bool dark = false;
};

struct PageAnswer {
  nlohmann::json answer;             // what the script returned
  std::vector<std::string> console;  // what the page wrote to the console, errors among it
};

// Opens the page, waits until it has settled, then runs `script`, the body of a function that returns something JSON
// can hold.
PageAnswer ask_page(const std::string& browser, const std::string& html, const std::string& script,
                    const PageLook& look = {});

}  // namespace lockstep::test
