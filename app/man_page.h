// The parser of the command line as pages for others: a man page for people, a completion for shells.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lockstep::app {

std::string man_page(const CLI::App& program);    // troff, section 1
std::string completion(const CLI::App& program);  // a bash script, which zsh reads too

}  // namespace lockstep::app
