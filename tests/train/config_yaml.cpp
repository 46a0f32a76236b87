// Whole files: what is one YAML document for us, and where a mistake is reported.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "config_support.h"
#include "train/yaml_parse.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a file without content is an error") {
  const std::string expected = "config.yaml:1:1: the file is empty; a config needs model and data";
  CHECK_EQ(message(""), expected);
  CHECK_EQ(message("# only a comment\n"), expected);
  CHECK_EQ(message("\n\n"), expected);
  CHECK_EQ(message("---\n"), "config.yaml:2:1: the file is empty; a config needs model and data");
}

TEST_CASE("the top level is a map") {
  CHECK_EQ(message("[1, 2]"), "config.yaml:1:1: expected a map of sections at the top level, found a list");
  CHECK_EQ(message("train"), "config.yaml:1:1: expected a map of sections at the top level, found 'train'");
}

TEST_CASE("model and data are required") {
  CHECK_EQ(message("train: {epochs: 1}\n"),
           "config.yaml:1:1: missing key 'model'; for example model: {preset: mnist_convnet}");
  CHECK_EQ(message("\nmodel: mlp_752\n"),
           "config.yaml:2:1: missing key 'data'; for example data: {train: {kind: csv, file: points.csv}}");
  CHECK_EQ(message("model: mlp_752\ndata: {prefetch: 2}\n"), "config.yaml:2:7: data: missing key 'train'");
}

TEST_CASE("one document per file") {
  CHECK_EQ(message("---\n" + with_sections("...\n")), "accepted");
  CHECK_EQ(refusal("---\nrun: {seed: 1}\n"),
           "config.yaml:3:1: unexpected text after the end of the document; a config is one document");
  CHECK_EQ(refusal("...\nrun: {seed: 1}\n"),
           "config.yaml:4:1: unexpected text after the end of the document; a config is one document");
}

TEST_CASE("a key given twice is an error at its second place") {
  CHECK_EQ(refusal("train:\n  epochs: 1\n  epochs: 2\n"),
           "config.yaml:5:3: duplicate key 'epochs' in train; first given in line 4");
  CHECK_EQ(refusal("data: {}\n"), "config.yaml:3:1: duplicate key 'data' at the top level; first given in line 2");
  CHECK_EQ(refusal("optimizer: {kind: sgd, lr: 1, 'lr': 2}\n"),
           "config.yaml:3:31: duplicate key 'lr' in optimizer; first given in line 3");
  CHECK_EQ(refusal("optimizer: {groups: [{match: [a]}, {match: [a], match: [b]}]}\n"),
           "config.yaml:3:49: duplicate key 'match' in optimizer.groups.1; first given in line 3");
}

TEST_CASE("aliases copy values and merge keys are refused") {
  const Config config = parse("optimizer: {kind: sgd, lr: &rate 0.5}\nschedule: {kind: one_cycle, max_lr: *rate}\n");
  CHECK_EQ(config.schedule.max_lr, 0.5);
  CHECK_EQ(
      refusal("optimizer: {<<: {kind: sgd}}\n"),
      "config.yaml:3:13: merge keys (<<) are not supported; write the keys out, or give the whole value by an alias");
  CHECK_EQ(refusal("run: {dir: *none}\n"), "config.yaml:3:12: the referenced anchor is not defined");
  CHECK_EQ(refusal("run: &a {dir: *a}\n"), "config.yaml:3:15: the alias stands inside the value that it refers to");
}

TEST_CASE("an anchored null is null") {
  CHECK_FALSE(parse("train: {max_steps: &n null, clip_norm: *n}\n").train.max_steps.has_value());
}

TEST_CASE("tags are refused") {
  CHECK_EQ(refusal("train: {epochs: !!int 3}\n"),
           "config.yaml:3:17: the tag tag:yaml.org,2002:int is not supported; the key decides the type");
}

TEST_CASE("keys are words") {
  CHECK_EQ(refusal("train: {null: 1}\n"), "config.yaml:3:9: a key must be a word, found null");
  CHECK_EQ(refusal("? [a, b]\n: c\n"),
           "config.yaml:3:3: a key must be a word, found a list or a map (is a bracket left open?)");
}

TEST_CASE("syntax errors have a position") {
  CHECK_EQ(refusal("train: [1, 2\n"),
           "config.yaml:4:1: end of sequence flow not found; is a bracket or a quote before it not closed?");
  CHECK_EQ(refusal("train: {epochs: 1}}\n"), "config.yaml:3:19: illegal flow end");
  CHECK_EQ(refusal("train: epochs: 1\n"), "config.yaml:3:14: illegal map value");
  CHECK_EQ(refusal("run: {dir: \"a}\n"),
           "config.yaml:4:1: end of map flow not found; is a bracket or a quote before it not closed?");
}

TEST_CASE("tabs in the indentation and bytes that are no text are found") {
  CHECK_EQ(refusal("train:\n\tepochs: 1\n"), "config.yaml:4:1: tab in the indentation; use spaces");
  CHECK_EQ(refusal("train:\n  \tepochs: 1\n"), "config.yaml:4:3: tab in the indentation; use spaces");
  CHECK_EQ(refusal("train:\n\t# comment\n\t\n  epochs: 1\t# one\n"), "accepted");
  CHECK_EQ(refusal("run: {dir: \xff}\n"), "config.yaml:3:12: byte 0xff is not UTF-8; save the file as UTF-8");
  CHECK_EQ(refusal("run: {dir: \xC0\xAF}\n"), "config.yaml:3:12: byte 0xc0 is not UTF-8; save the file as UTF-8");
  CHECK_EQ(refusal("run: {dir: \xED\xA0\x80}\n"), "config.yaml:3:12: byte 0xed is not UTF-8; save the file as UTF-8");
  CHECK_EQ(refusal(std::string("run: {dir: a\0b}\n", 16)),
           "config.yaml:3:13: control character 0x00; a config is plain text");
  CHECK_EQ(refusal("run: {dir: a\x04}\ngarbage"), "config.yaml:3:13: control character 0x04; a config is plain text");
  CHECK_EQ(parse("run: {dir: \xC3\xA4/\xE2\x82\xAC/\xF0\x9F\x98\x80}\n").run.dir,
           "\xC3\xA4/\xE2\x82\xAC/\xF0\x9F\x98\x80");
}

TEST_CASE("a byte order mark and Windows line ends change nothing") {
  CHECK_EQ(message("\xEF\xBB\xBF" + with_sections("")), "accepted");
  CHECK_EQ(refusal("train:\r\n  epochs: 0\r\n"),
           "config.yaml:4:11: train.epochs: 0 is out of range; expected an integer "
           "1 <= x <= 9007199254740992");
}

TEST_CASE("depth and size and expansion are bounded") {
  CHECK_EQ(refusal("run: " + std::string(200, '[') + std::string(200, ']') + "\n"),
           "config.yaml:3:37: nested more than 32 deep");
  CHECK_EQ(message("# " + std::string(kMaxYamlBytes, 'x')), "config.yaml:1:1: larger than 1048576 bytes");
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1) + ", ";
    laughs +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias + alias + alias + alias + alias + "]\n";
  }
  CHECK_EQ(message(laughs), "config.yaml:7:15: more than 100000 values (with aliases expanded)");
}

TEST_CASE("files that cannot be read are named") {
  const auto error = [](const std::string& path) -> std::string {
    try {
      load_config(path, {});
    } catch (const Error& caught) {
      return caught.what();
    }
    return "accepted";
  };
  CHECK_EQ(error("/nowhere/config.yaml"),
           "/nowhere/config.yaml: cannot open the config file: No such file or directory");
  CHECK_EQ(error("/tmp"), "/tmp: is a directory; expected a config file");
  CHECK_EQ(error("/dev/zero"), "/dev/zero:1:1: larger than 1048576 bytes");
}

TEST_CASE("load_config reads what parse_config parses") {
  const auto path = std::filesystem::temp_directory_path() / "lockstep_config_test.yaml";
  std::ofstream(path) << with_sections("run: {seed: 5}\n");
  const Config config = load_config(path.string(), {"train.epochs=2"});
  std::filesystem::remove(path);
  CHECK_EQ(config.path, path.string());
  CHECK_EQ(config.run.seed, 5);
  CHECK_EQ(config.train.epochs, 2);
}
