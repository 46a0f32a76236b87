// Every command line that the documents show (in ```console blocks, after "$ ") works as it stands there,
// from the project's root; what it would write below runs/ goes elsewhere.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/run_folder.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

struct Command {
  std::string page, line;
  std::vector<std::string> words;
};

// Pages with tests of their own: what their commands write is looked at there.
bool has_own_test(const fs::path& page) {
  return page.filename() == "sweeps.md" || page.filename() == "after_training.md";
}

std::vector<Command> commands_of(const fs::path& page) {
  std::vector<Command> commands;
  std::ifstream file(page);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) inside = line == "```console";
    if (!inside || !line.starts_with("$ ")) continue;
    Command command{page.filename(), line.substr(2), {}};
    std::istringstream words(command.line);
    for (std::string word; words >> word;) command.words.push_back(word);
    commands.push_back(std::move(command));
  }
  return commands;
}

// The program under test in place of the installed one, its output out of the way, and any number of ranks on this
// machine.
std::vector<std::string> runnable(const Command& command, const fs::path& folder) {
  std::vector<std::string> words;
  bool writes = false;
  for (const std::string& word : command.words) {
    const bool output = !words.empty() && words.back() == "--out";
    words.push_back(word == "lockstep" ? LOCKSTEP_BINARY : output ? (folder / word).string() : word);
    if (word == "mpirun") words.insert(words.end(), {"--oversubscribe", "--bind-to", "none"});
    writes = writes || word == "train" || word == "lr-find";
  }
  if (writes) words.insert(words.end(), {"--set", "run.dir=" + (folder / "run").string()});
  return words;
}

}  // namespace

TEST_CASE("every command that the documents show works") {
  const RunFolder folder("");
  std::vector<fs::path> pages{LOCKSTEP_SOURCE_DIR "/README.md"};
  for (const auto& entry : fs::directory_iterator(LOCKSTEP_SOURCE_DIR "/docs"))
    if (entry.path().extension() == ".md" && !has_own_test(entry.path())) pages.push_back(entry.path());
  size_t tried = 0;
  fs::current_path(LOCKSTEP_SOURCE_DIR);
  for (const fs::path& page : pages) {
    for (const Command& command : commands_of(page)) {
      CAPTURE(command.page);
      CAPTURE(command.line);
      const Outcome outcome = run_process(runnable(command, folder / ""), 100);
      const bool skipped = outcome.exit_code == 77 && outcome.says("SKIPPED: ");  // and says why
      CHECK_MESSAGE((outcome.exit_code == 0 || skipped), outcome.output);
      fs::remove_all(folder / "run");
      ++tried;
    }
  }
  CHECK(tried >= 6);
}
