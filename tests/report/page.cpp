// The report's page in a real browser: it renders without a word on the console, fits a phone, follows the reader's
// colours, saves its pictures, and deals samples as the program does.
#include <doctest/doctest.h>

#include <cmath>

#include "report/html_report.h"
#include "support/browser.h"
#include "train/plan_report.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* kHostile = "</script><script>document.title = 'broken'</script><!--<b>&amp;";

RunData run(const std::string& label, int64_t world_size) {
  RunData made;
  made.label = label;
  made.world_size = world_size;
  made.samples = 640;
  made.steps_per_epoch = 20;
  made.arithmetic = "global batch 32 = batch_size 16 x world_size 2 x accumulate 1";
  made.config = std::string("run:\n  dir: ") + kHostile;
  made.settings = {{"run.dir", label}, {"run.note", kHostile}, {"train.batch_size", std::to_string(32 / world_size)}};
  made.environment = {{"host", std::string("n1") + kHostile}, {"cpu", "Some CPU with a rather long name @ 2.00GHz"}};
  for (int64_t step = 0; step < 20; ++step) {
    made.steps.push_back({.step = step,
                          .epoch = 0,
                          .samples_seen = 32 * (step + 1),
                          .loss = 2.0 / static_cast<double>(step + 1),
                          .lr = 0.1,
                          .samples_per_second = 1000,
                          .gradient_norm = step == 3 ? NAN : 1.5});
  }
  made.evals = {{.step = 9, .values = {{"loss", 0.5}, {"accuracy", 0.8}}},
                {.step = 19, .values = {{"loss", 0.4}, {"accuracy", 0.9}}}};
  TimeSplit split{.steps = 3, .ranks = {}};
  for (int64_t rank = 0; rank < world_size; ++rank)
    split.ranks.push_back({1e-3, 2e-3, 4e-3, rank == 0 ? 3e-3 : 1e-3, 1e-3});
  made.times = {{0, split}, {19, split}};
  made.ended = 20;
  made.seconds = 1.5;
  return made;
}

std::string page() {
  const nlohmann::json sweep{{"columns", {"trial", "state", "strong_efficiency", "problem"}},
                             {"rows", {{"a", "done", 0.85, ""}, {kHostile, "failed", nullptr, kHostile}}},
                             {"failed", {false, true}},
                             {"notes", {std::string("largest difference 1e-7 ") + kHostile}}};
  return html_report({run("one", 1), run(std::string("two ") + kHostile, 2)}, sweep);
}

constexpr const char* kFit = R"(
  const wide = [...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll, .tables, details') &&
    one.getBoundingClientRect().right > innerWidth + 0.5).map(one => one.tagName + '#' + one.id + '.' + one.className);
  const sum = colour => colour.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
  const style = getComputedStyle(document.body);
  return {scroll: document.scrollingElement.scrollWidth, width: innerWidth, wide, title: document.title,
    paper: sum(style.backgroundColor), ink: sum(style.color),
    canvases: [...document.querySelectorAll('canvas')].map(one => [one.clientWidth, one.clientHeight]),
    painted: charts.filter(chart => new Set(chart.ctx.getImageData(0, 0, chart.canvas.width, chart.canvas.height).data).size > 8).length,
    charts: charts.length, sweepRows: document.querySelectorAll('#sweep tbody tr').length,
    failed: document.querySelectorAll('#sweep tr.failed').length, scripts: document.scripts.length};
)";

}  // namespace

TEST_CASE("the page renders without a word on the console at any width and in both colour schemes") {
  const std::string browser = browser_or_skip();
  if (browser.empty()) return;
  for (const int width : {390, 1200}) {
    for (const bool dark : {false, true}) {
      CAPTURE(width);
      CAPTURE(dark);
      const PageAnswer page_answer = ask_page(browser, page(), kFit, {.width = width, .dark = dark});
      const nlohmann::json& seen = page_answer.answer;
      CAPTURE(seen.dump());
      for (const std::string& line : page_answer.console) CHECK_MESSAGE(false, line);
      CHECK(seen["width"] == width);
      CHECK(seen["scroll"] <= width);
      CHECK(seen["wide"].empty());
      CHECK((seen["paper"] > seen["ink"]) == !dark);
      CHECK(seen["charts"] == 8);  // loss, two of the validation, rate, norm, images/s; ranks, runs
      CHECK(seen["painted"] == 8);
      for (const nlohmann::json& size : seen["canvases"]) {
        CHECK(size[0] > 200);
        CHECK(size[1] > 150);
      }
    }
  }
}

TEST_CASE("texts of files cannot break out of the page's data") {
  CHECK(page().find("'broken'</script>") == std::string::npos);
  CHECK(json_for_script({{"</script>", "<!-- & \xff"}}) == R"({"\u003c/script\u003e":"\u003c!-- \u0026 \ufffd"})");
  const std::string browser = browser_or_skip();
  if (browser.empty()) return;
  const nlohmann::json seen = ask_page(browser, page(), kFit).answer;
  CHECK(seen["title"] == "lockstep report");
  CHECK(seen["scripts"] == 6);  // data, charts, three of the page, this test's
  CHECK(seen["sweepRows"] == 2);
  CHECK(seen["failed"] == 1);
  const nlohmann::json texts = ask_page(browser, page(), R"(
    return [document.querySelector('#sweep tr.failed td').textContent, document.querySelector('details pre').textContent];
  )")
                                   .answer;
  CHECK(texts[0] == kHostile);
  CHECK(texts[1] == std::string("run:\n  dir: ") + kHostile);
}

TEST_CASE("every picture can be saved and the axis and the colours change on demand") {
  const std::string browser = browser_or_skip();
  if (browser.empty()) return;
  const PageAnswer page_answer = ask_page(browser, page(), R"(
    const saved = [];
    HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href.slice(0, 22), this.href.length]); };
    const figures = [...document.querySelectorAll('figure')];
    for (const figure of figures) figure.querySelector('button').click();
    const lastX = () => charts.find(chart => chart.config.type === 'line').data.datasets[0].data.at(-1).x;
    const seen = lastX();
    document.getElementById('axis').value = 'step';
    document.getElementById('axis').dispatchEvent(new Event('change'));
    const steps = lastX(), before = getComputedStyle(document.body).backgroundColor;
    document.getElementById('theme').click();
    return {saved, figures: figures.length, seen, steps, before, after: getComputedStyle(document.body).backgroundColor};
  )");
  const nlohmann::json& seen = page_answer.answer;
  CAPTURE(seen.dump());
  CHECK(page_answer.console.empty());
  CHECK(seen["figures"] == 9);
  REQUIRE(seen["saved"].size() == 9);
  for (const nlohmann::json& picture : seen["saved"]) {
    const std::string name = picture[0], url = picture[1];
    CAPTURE(name);
    CHECK((name.ends_with(".png") ? url == "data:image/png;base64," : url == "data:image/svg+xml;cha"));
    CHECK(picture[2] > 2000);
  }
  CHECK(seen["seen"] == 640);
  CHECK(seen["steps"] == 19);
  CHECK(seen["before"] != seen["after"]);
}

TEST_CASE("the page deals samples exactly as the program's plan") {
  const std::string browser = browser_or_skip();
  if (browser.empty()) return;
  std::vector<std::string> expected;
  nlohmann::json cases = nlohmann::json::array();
  const std::vector<int64_t> worlds{1, 2, 3, 4, 8, 11};
  for (const int64_t samples : {0, 1, 5, 16, 17, 100, 1000}) {
    for (const auto& [batch, accumulate] : {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {2, 3}, {7, 2}, {64, 1}}) {
      for (const char* uneven : {"exact", "pad", "drop"}) {
        for (const bool drop_last : {false, true}) {
          const bool odd = (samples + batch) % 2 == 1;
          DataPlanSpec spec{.samples = samples,
                            .batch_size = batch,
                            .accumulate = accumulate,
                            .epochs = odd ? 4 : 2,
                            .uneven = parse_uneven(uneven),
                            .drop_last = drop_last};
          if (odd) spec.max_steps = 5;
          const SamplerSettings order{.shuffle = samples != 16, .seed = odd ? 4294967294U : 7U};
          expected.push_back(plan_report(spec, worlds, order));
          cases.push_back({{{"samples", samples},
                            {"batch_size", batch},
                            {"accumulate", accumulate},
                            {"epochs", spec.epochs},
                            {"uneven", uneven},
                            {"drop_last", drop_last},
                            {"max_steps", odd ? nlohmann::json(5) : nlohmann::json(nullptr)}},
                           {{"shuffle", order.shuffle}, {"seed", order.seed}}});
        }
      }
    }
  }
  const PageAnswer page_answer = ask_page(browser, page(),
                                          "return " + cases.dump() + ".map(([spec, order]) => planText(spec, " +
                                              nlohmann::json(worlds).dump() + ", order));");
  REQUIRE(page_answer.answer.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) CHECK(page_answer.answer[i].get<std::string>() == expected[i]);
}

TEST_CASE("the reader's numbers show who gets which samples and which loaders stay empty") {
  const std::string browser = browser_or_skip();
  if (browser.empty()) return;
  const PageAnswer page_answer = ask_page(browser, page(), R"(
    const set = values => {
      for (const [name, value] of Object.entries(values)) {
        const field = document.getElementById('plan').elements[name];
        if (field.type === 'checkbox') field.checked = value; else field.value = value;
      }
      document.getElementById('plan').dispatchEvent(new Event('input'));
      return {warning: document.getElementById('plan-warning').textContent, text: document.getElementById('plan-text').textContent,
        cells: [...document.querySelectorAll('#plan-picture svg text')].map(one => one.textContent),
        dashed: document.querySelectorAll('#plan-picture rect[stroke-dasharray="3 3"]').length,
        ranks: [...document.querySelectorAll('#plan-ranks tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))};
    };
    const base = {samples: 10, world_size: 4, batch_size: 2, accumulate: 1, epochs: 1, uneven: 'pad', drop_last: false, shuffle: false, seed: 0};
    return [set(base), set({...base, samples: 5, world_size: 8, drop_last: true, uneven: 'exact'}), set({...base, samples: 1e12, world_size: -3})];
  )");
  const nlohmann::json& padded = page_answer.answer[0];
  CAPTURE(padded.dump());
  CHECK(page_answer.console.empty());
  CHECK(padded["dashed"] == 2);  // 10 samples on 4 ranks: two are given twice
  CHECK(padded["warning"] == "");
  CHECK(padded["ranks"][3] == nlohmann::json({"rank 3", "3", "2", "1", "0"}));
  CHECK(padded["text"] == plan_report({.samples = 10, .world_size = 4, .batch_size = 2, .uneven = Uneven::pad},
                                      std::vector<int64_t>{4}, {.shuffle = false}));
  const DataPlan empty({.samples = 5, .world_size = 8, .batch_size = 2, .drop_last = true});
  CHECK(page_answer.answer[1]["warning"] == "Warning: " + empty_loader_text(empty));
  CHECK(page_answer.answer[2]["text"].get<std::string>().find("world_size 1: global batch = batch_size 2") !=
        std::string::npos);
}
