#include "support/browser.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/process.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBegin = "ANSWER-BEGINS:";
constexpr const char* kEnd = ":ANSWER-ENDS";

// The answer goes into the document in base 64: whatever is in it, the dump of the document shows it unchanged.
std::string with_script(std::string html, const std::string& script) {
  const std::string code =
      "<script>addEventListener('load', () => setTimeout(() => {\n"
      "  let answer;\n"
      "  try { answer = {value: (() => {" +
      script +
      "})()}; } catch (error) { answer = {failed: String(error.stack)}; }\n"
      "  const bytes = new TextEncoder().encode(JSON.stringify(answer));\n"
      "  const text = btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));\n"
      "  document.body.append('ANSWER-' + 'BEGINS:' + text + ':ANSWER-' + 'ENDS');\n"
      "}, 300));</script>\n";
  const size_t end = html.rfind("</body>");
  REQUIRE(end != std::string::npos);
  return html.insert(end, code);
}

std::string from_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned word = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    word = (word << 6 | static_cast<unsigned>(letters.find(c))) & 0xffffff;
    bits += 6;
    if (bits >= 8) bits -= 8, bytes += static_cast<char>(word >> bits & 0xff);
  }
  return bytes;
}

}  // namespace

std::string browser_or_skip() {
  const char* path = std::getenv("PATH");
  for (const char* name : {"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}) {
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
      if (access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  }
  MESSAGE("SKIPPED: no browser: install chromium-headless-shell (or chromium)");
  return "";
}

PageAnswer ask_page(const std::string& browser, const std::string& html, const std::string& script,
                    const PageLook& look) {
  static std::atomic<int> counter{0};
  const fs::path folder =
      fs::temp_directory_path() / ("lockstep-page-" + std::to_string(getpid()) + "-" + std::to_string(counter++));
  fs::create_directories(folder);
  std::ofstream(folder / "page.html") << with_script(html, script);
  const Outcome outcome = run_process(
      {browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
       "--disable-dev-shm-usage", "--virtual-time-budget=10000", "--user-data-dir=" + (folder / "profile").string(),
       "--window-size=" + std::to_string(look.width) + ",844",
       std::string("--blink-settings=preferredColorScheme=") + (look.dark ? "0" : "1"), "--dump-dom",
       "file://" + (folder / "page.html").string()},
      120);
  fs::remove_all(folder);
  PageAnswer result;
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);)
    if (line.find(":CONSOLE") != std::string::npos) result.console.push_back(line);
  const size_t begin = outcome.output.find(kBegin), end = outcome.output.find(kEnd);
  REQUIRE_MESSAGE(end != std::string::npos, outcome.output.substr(0, 4000));
  const size_t first = begin + std::string(kBegin).size();
  const nlohmann::json answer = nlohmann::json::parse(from_base64(outcome.output.substr(first, end - first)));
  REQUIRE_MESSAGE(answer.contains("value"), answer.dump());
  result.answer = answer["value"];
  return result;
}

}  // namespace lockstep::test
