// Things people do wrong, and that each is told once, with what it is, where it is and how to mend it, before anything
// is trained. docs/errors.md is made of this table: LOCKSTEP_UPDATE_DOCS rewrites it.
#include "mistakes.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/run_folder.h"

using namespace lockstep::test;

namespace {

// Files that the table's configs name.
void write_files(const RunFolder& folder) {
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("text.csv", "a,b,y\n1,2,0\n1,two,1\n");
  write("labels.csv", "a,b,y\n1,2,0\n1,2,7\n");
  write("no.gz", "this is no IDX file\n");
  for (const char* name : {"folder", "full"}) std::filesystem::create_directory(folder / name);
  // Another run's checkpoints.
  REQUIRE(folder.train("used", 1, {"--set", "checkpoint.every=1"}).exit_code == 0);
  std::filesystem::remove_all(folder / "damaged");
  std::filesystem::copy(folder / "used", folder / "damaged", std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "damaged/checkpoints"))
    if (entry.is_directory()) std::filesystem::resize_file(entry.path() / "model.safetensors", 20);
}

// What the program says, without the folder's name.
std::string told(const Outcome& outcome, const std::string& folder) {
  std::string text = outcome.output;
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
  return text;
}

}  // namespace

TEST_CASE("fifty mistakes are each told with what and where and how to mend it") {
  const RunFolder folder(kSound, std::filesystem::temp_directory_path());  // /dev/shm is made small for one
  write_files(folder);
  const bool may_mount = run_process({"unshare", "-m", "true"}, 20).exit_code == 0;
  std::string page = kErrorsIntroduction;
  CHECK(mistakes().size() >= 50);
  for (const Mistake& mistake : mistakes()) {
    CAPTURE(mistake.what);
    std::ofstream(folder / "config.yaml") << mistake.config;
    page += fmt::format("| {} | {} |\n", mistake.what, fmt::join(mistake.told, " ... "));
    if (!mistake.prefix.empty() && !may_mount) continue;
    const std::string simulated = SIMULATED_PROGRAM;
    if (!mistake.gpus.empty() && simulated.empty()) continue;
    std::vector<std::string> command{mistake.gpus.empty() ? LOCKSTEP_BINARY : simulated};
    command.insert(command.end(), mistake.arguments.begin(), mistake.arguments.end());
    if (mistake.ranks > 1) command = mpirun(mistake.ranks, command);
    command.insert(command.begin(), mistake.prefix.begin(), mistake.prefix.end());
    if (!mistake.gpus.empty()) {
      command.insert(command.begin(), mistake.gpus.begin(), mistake.gpus.end());
      command.insert(command.begin(), "env");
    }
    for (std::string& word : command) {
      if (const size_t at = word.find("FOLDER"); at != std::string::npos) word.replace(at, 6, (folder / "").string());
    }
    const Outcome outcome = run_process(command, 60);
    CHECK(outcome.exit_code == mistake.exit_code);
    const std::string text = told(outcome, (folder / "").string());
    CAPTURE(text);
    for (const std::string& part : mistake.told) CHECK_MESSAGE(text.find(part) != std::string::npos, part);
    CHECK_MESSAGE(outcome.count(mistake.told.front()) == 1, "told once, whatever the ranks");
  }
  const std::string path = LOCKSTEP_SOURCE_DIR "/docs/errors.md";
  if (std::getenv("LOCKSTEP_UPDATE_DOCS") != nullptr) std::ofstream(path) << page;
  CHECK_MESSAGE(bytes_of(path) == page, "docs/errors.md is out of date: run this test with LOCKSTEP_UPDATE_DOCS=1");
}
