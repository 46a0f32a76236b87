#include "core/restart_command.h"

#include <algorithm>
#include <string_view>

#include "core/whole_number.h"

namespace lockstep {
namespace {

constexpr std::string_view count_options[] = {"-np", "-n", "--np", "--ntasks"};

std::optional<int64_t> number(std::string_view text) {
  const auto value = whole_number<int64_t>(text);
  return value.value_or(0) < 1 ? std::nullopt : value;
}

// The word that holds the number of ranks, and where in it the number begins.
struct Place {
  size_t word, at;
};

std::optional<Place> place_of_count(const CommandLine& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string_view word = command[i];
    const size_t equals = word.find('=');
    if (std::ranges::find(count_options, word.substr(0, equals)) == std::end(count_options)) continue;
    const Place place = equals == std::string_view::npos ? Place{i + 1, 0} : Place{i, equals + 1};
    if (place.word < command.size() && number(std::string_view(command[place.word]).substr(place.at))) return place;
  }
  return std::nullopt;
}

}  // namespace

CommandLine resuming(CommandLine command) {
  std::erase(command, "--overwrite");
  if (!resumed_path(command)) command.insert(command.end(), {"--resume", "auto"});
  return command;
}

std::optional<std::string> resumed_path(const CommandLine& command) {
  constexpr std::string_view option = "--resume";
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == option) return i + 1 < command.size() ? command[i + 1] : "";
    if (command[i].starts_with(std::string(option) + "=")) return command[i].substr(option.size() + 1);
  }
  return std::nullopt;
}

std::optional<int64_t> rank_count(const CommandLine& command) {
  const auto place = place_of_count(command);
  return place ? number(std::string_view(command[place->word]).substr(place->at)) : std::nullopt;
}

CommandLine with_ranks(CommandLine command, int64_t ranks) {
  if (const auto place = place_of_count(command))
    command[place->word].replace(place->at, std::string::npos, std::to_string(ranks));
  return command;
}

}  // namespace lockstep
