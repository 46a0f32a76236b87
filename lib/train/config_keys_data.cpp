// The sections model and data.
#include <algorithm>

#include "core/error.h"
#include "data/synthetic.h"
#include "train/config_keys.h"
#include "train/config_layers.h"
#include "train/config_scalar.h"
#include "train/config_suggest.h"

namespace lockstep {
namespace {

Key layers_key() {
  Key result;
  result.name = "layers";
  result.type = "list of layers";
  result.doc = "The network from input to output; see Layers below.";
  result.default_text = "none";
  result.read = [](const YamlNode& node, const std::string& path, void* object) {
    read_layers(node, path, static_cast<Config*>(object)->model.layers);
  };
  result.print = [](const void* object) {
    const ModelSpec& model = static_cast<const Config*>(object)->model;
    if (!model.preset.empty() || model.layers.empty()) return std::string("null");
    std::string text;
    for (const LayerSpec& layer : model.layers) text += "\n    - " + print_layer(layer);
    return text;
  };
  return result;
}

Key preset_key() {
  Key result = key("preset", &ModelSpec::preset, anything(), "A named network: " + join(preset_names(), ", ") + ".");
  result.default_text = "none";
  result.read = [](const YamlNode& node, const std::string& path, void* object) {
    read_value(node, path, anything(), static_cast<Config*>(object)->model.preset);
  };
  result.print = [](const void* object) {
    const std::string& preset = static_cast<const Config*>(object)->model.preset;
    return preset.empty() ? std::string("null") : print_text(preset);
  };
  return result;
}

void check_model(void* object, const MapView& view) {
  if (view.has("preset") && view.has("layers")) {
    view.fail("layers", "is given beside model.preset; give one of them (null takes one back)");
  }
  if (!view.has("preset") && !view.has("layers")) {
    fail_at(view.node.at, "model: missing key 'layers' or 'preset'");
  }
  const std::string& preset = static_cast<Config*>(object)->model.preset;
  const std::vector<std::string> known = preset_names();
  if (preset.empty() || std::find(known.begin(), known.end(), preset) != known.end()) return;
  fail_path(view.at("preset"), "model.preset",
            fmt::format("no preset is named '{}'; known: {}{}", printable(preset), join(known, ", "),
                        did_you_mean(preset, known)));
}

void check_dataset(void* object, const MapView& view) {
  auto& set = *static_cast<DatasetConfig*>(object);
  set.where = view.node.at.str();
  if (set.kind == "toy" && set.name.empty()) set.name = "toy_train";
  if (set.kind == "synthetic" && set.name.empty()) {
    fail_at(view.node.at, fmt::format("{}: missing key 'name' (kind synthetic)", view.path));
  }
  if (set.kind == "toy" && !set.name.starts_with("toy")) {
    view.fail("name", fmt::format("'{}' is no toy; write kind: synthetic", set.name));
  }
  if (set.augment != 1 && !set.name.starts_with("toy_")) view.fail("augment", "belongs to toy_train and toy_test");
  if (set.count == 0) view.fail("count", "is 0: the data set would be empty");
}

std::vector<Key> dataset_keys() {
  using S = DatasetConfig;
  const Rule size = between(0, 9007199254740992.0);  // 2^53
  std::vector<Key> keys;
  keys.push_back(key("kind", &S::kind, one_of({"idx", "csv", "npy", "synthetic", "toy"}), "Format of the data.")
                     .must()
                     .also({"type", "format"}));
  keys.push_back(key("images", &S::images, anything(), "File of u8 images, plain or .gz.").of({"idx"}).must());
  keys.push_back(key("labels", &S::labels, anything(), "File of u8 labels, plain or .gz.").of({"idx"}).must());
  keys.push_back(key("file", &S::file, anything(), "The table, a line per sample.").of({"csv"}).must().also({"path"}));
  keys.push_back(key("features", &S::features, anything(),
                     "Columns of the input, names or numbers from 0; empty: all but the target.")
                     .of({"csv"})
                     .also({"columns"}));
  keys.push_back(
      key("target", &S::target, anything().or_empty(), "Column of the target, name or number; empty: the last.")
          .of({"csv"})
          .also({"label"}));
  keys.push_back(
      key("header", &S::header, anything(), "The first line names the columns; null: it does if it holds no number.")
          .of({"csv"}));
  keys.push_back(key("x", &S::x, anything(), "Array of the inputs, a row per sample.").of({"npy"}).must());
  keys.push_back(key("y", &S::y, anything(), "Array of the targets.").of({"npy"}).must());
  keys.push_back(key("name", &S::name, one_of(synthetic_names()), "Name of the generator; see Synthetic data below.")
                     .of({"synthetic", "toy"})
                     .by_default("synthetic: required, toy: toy_train"));
  keys.push_back(key("samples", &S::samples, size, "Number of samples; 0: the generator's own.")
                     .of({"synthetic"})
                     .also({"size", "num_samples"}));
  keys.push_back(
      key("shape", &S::shape, between(1, 1 << 30).items(0, 5), "Shape of a sample; empty: the generator's own.")
          .of({"synthetic"}));
  keys.push_back(key("target_width", &S::target_width, between(1, 1 << 30), "Values per target.").of({"synthetic"}));
  keys.push_back(key("values", &S::values, anything(), "Targets, repeated over the samples.").of({"synthetic"}));
  keys.push_back(key("augment", &S::augment, between(1, 1 << 30),
                     "toy_train, toy_test: copies of the points, each with its own noise.")
                     .of({"synthetic", "toy"}));
  keys.push_back(key("classes", &S::classes, between(0, 1 << 30),
                     "Labels lie in [0, classes); 0: not checked, or the generator's own.")
                     .also({"num_classes"}));
  keys.push_back(key("seed", &S::seed, anything(), "Seed of the generator.").of({"synthetic", "toy"}));
  keys.push_back(key("seed_per_rank", &S::seed_per_rank, anything(),
                     "Rank r draws from seed + r: every rank holds samples of its own and nothing is split.")
                     .of({"synthetic", "toy"}));
  Key normalize = section("normalize", &S::kind, normalize_schema, "(x - mean) / std, after scaling bytes to [0, 1].");
  normalize.type = "map or null";
  normalize.default_text = "null";
  normalize.read_absent = false;
  normalize.is_inline = true;
  normalize.read = [](const YamlNode& node, const std::string& path, void* object) {
    read_map(normalize_schema(), node, path, object);
  };
  normalize.child_object = [](const void* object) -> const void* {
    const auto* set = static_cast<const S*>(object);
    return set->mean || set->std ? object : nullptr;
  };
  keys.push_back(std::move(normalize));
  keys.push_back(key("first", &S::first, size, "First sample of a contiguous part.").also({"offset", "start"}));
  keys.push_back(
      key("count", &S::count, between(-1, 9007199254740992.0), "Samples of the part; -1: to the end.").also({"limit"}));
  return keys;
}

}  // namespace

const Schema& model_schema() {
  static const Schema schema = [] {
    Schema made;
    made.doc = "The network: a preset or a list of layers.";
    made.scalar_key = "preset";
    made.defaults = std::make_shared<Config>();
    made.keys = {preset_key(), layers_key(), init_from_key()};
    made.finish = check_model;
    return made;
  }();
  return schema;
}

const Schema& normalize_schema() {
  using S = DatasetConfig;
  static const Schema schema = [] {
    Schema made;
    made.doc = "Scaling of the inputs.";
    made.defaults = std::make_shared<S>();
    made.keys = {key("mean", &S::mean, anything(), "Subtracted.").must(),
                 key("std", &S::std, above(0), "Divides.").must()};
    for (Key& member : made.keys) member.type = "number", member.default_text = "required";
    return made;
  }();
  return schema;
}

const Schema& augmentation_schema() {
  using S = AugmentationConfig;
  static const Schema schema = [] {
    Schema made;
    made.doc =
        "Random pictures of training images [C, H, W], drawn anew every epoch from run.seed, the epoch and the sample: "
        "the same on any number of ranks.";
    made.defaults = std::make_shared<S>();
    made.keys = {key("crop_padding", &S::crop_padding, between(0, 1 << 20),
                     "Black pixels put around an image, of which a random window of its own size is cut.")
                     .also({"random_crop", "padding"}),
                 key("flip", &S::flip, between(0, 1), "Probability of a left-right mirror image.")
                     .also({"random_flip", "hflip", "horizontal_flip"})};
    return made;
  }();
  return schema;
}

const Schema& dataset_schema() {
  static const Schema schema = [] {
    Schema made;
    made.doc = "One data set. Which keys there are depends on `kind`.";
    made.defaults = std::make_shared<DatasetConfig>();
    made.keys = dataset_keys();
    discriminate(made, "kind", &DatasetConfig::kind);
    made.finish = check_dataset;
    return made;
  }();
  return schema;
}

const Schema& data_schema() {
  using S = DataConfig;
  static const Schema schema = [] {
    Schema made;
    made.doc = "The data sets.";
    made.defaults = std::make_shared<S>();
    made.keys = {section("train", &S::train, dataset_schema, "Training samples.").must().also({"training"}),
                 optional_section("val", &S::val, dataset_schema, "Validation samples, each counted once.")
                     .also({"validation", "test", "eval"}),
                 section("augmentation", &S::augmentation, augmentation_schema, "Random pictures of training images.")
                     .also({"augment", "transforms", "transform"}),
                 key("prefetch", &S::prefetch, between(-1, 1024),
                     "Batches assembled ahead by a thread; -1: as many as help, 0: none.")
                     .also({"num_workers", "workers"})};
    return made;
  }();
  return schema;
}

}  // namespace lockstep
