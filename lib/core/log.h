// Messages for people: one write per line, rank 0 only unless the message matters from any rank.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace lockstep::log {

enum class Color { automatic, always, never };

struct Options {
  bool quiet = false;      // warnings and errors only
  bool all_ranks = false;  // what rank 0 would say, from every rank, with its number
  // Warnings stand out. automatic: on a terminal, unless NO_COLOR is set.
  Color color = Color::automatic;
};

// Call once at start. Rank 0 prints info and warnings; the others print warnings with "[rank r]" before them.
void setup(int rank, int world_size, const Options& options = {});
// The lines of this process, those before this call included, go to the end of a file, too: what a run's folder keeps.
// Throws Error when it can't be opened. fresh: empties the file first.
void copy_to(const std::string& path, bool fresh);

void write_info(std::string_view line);     // stdout, rank 0
void write_detail(std::string_view line);   // likewise, but for the file alone where a status line says it
void write_warning(std::string_view line);  // stderr, any rank
void write_any(std::string_view line);      // stdout, any rank, prefixed with its rank when there are several

// A line at the bottom that changes in place, where people watch: rank 0's output arrives at a terminal. Elsewhere
// live() is false and status() does nothing. Empty: no such line.
bool live();
void status(std::string_view line);

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write_info(fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void detail(fmt::format_string<Args...> format, Args&&... args) {
  write_detail(fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write_warning(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep::log
