// Messages for people: one write per line, rank 0 only unless the message matters from any rank.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace lockstep::log {

// Call once at start. Rank 0 prints info and warnings; the others print warnings with "[rank r]" before them.
void setup(int rank, int world_size, bool quiet);
void write_info(std::string_view line);     // stdout, rank 0
void write_warning(std::string_view line);  // stderr, any rank
void write_any(std::string_view line);      // stdout, any rank, prefixed with its rank when there are several

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write_info(fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write_warning(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep::log
