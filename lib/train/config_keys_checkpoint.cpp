// The section checkpoint, and model.init_from.
#include "train/config_keys.h"
#include "train/metrics/table.h"

namespace lockstep {

const Schema& checkpoint_schema() {
  using S = CheckpointConfig;
  static const Schema schema = [] {
    const Rule count = between(1, 9007199254740992.0);  // 2^53
    Schema made;
    made.doc = "Checkpoints below run.dir/checkpoints, from which a run goes on to the same bits.";
    made.scalar_key = "every";
    made.defaults = std::make_shared<S>();
    made.keys = {
        key("every", &S::every, anything().bare_steps(),
            "How often: 'N epochs', 'N steps' or N for short, or never; otherwise at the end of the run, too.")
            .also({"interval", "frequency", "save_every", "save_steps"}),
        key("keep", &S::keep, between(1, 1 << 20), "How many are kept, the newest.")
            .also({"keep_last", "save_total_limit", "max_to_keep"}),
        key("keep_every", &S::keep_every, count, "Also keeps those of every so many steps for good; null: none."),
        key("keep_best", &S::keep_best, anything(), "Also keeps the one of the best validation.").also({"save_best"}),
        key("best", &S::best, one_of(watchable_metrics()),
            "The number by which the best model of the run is chosen, of eval.metrics; null: the one of "
            "train.early_stopping, else val.loss.")
            .also({"monitor"}),
        key("on_error", &S::on_error, one_of({"stop", "warn"}),
            "Where one cannot be written (disk full, quota): stop: the run ends; warn: it goes on. Those written "
            "before stay as they are."),
        key("background", &S::background, anything(),
            "Writes while training goes on: a step pays for a copy only; false: training waits for the disk.")
            .also({"async", "asynchronous", "async_save"})};
    return made;
  }();
  return schema;
}

const Schema& init_from_schema() {
  using S = InitFromConfig;
  static const Schema schema = [] {
    Schema made;
    made.doc = "Weights to start from instead of random ones. See Starting from weights below.";
    made.scalar_key = "file";
    made.defaults = std::make_shared<S>();
    made.keys = {key("file", &S::file, anything(), "A .safetensors file, or a checkpoint.").must().also({"path"}),
                 key("rename", &S::rename, anything(),
                     "{name in the file: name here}; a * at the end of both stands for any end, null leaves out.")
                     .also({"mapping", "key_mapping"}),
                 key("strict", &S::strict, anything(),
                     "Every parameter must be in the file and every tensor of the file in the model.")};
    for (Key& each : made.keys) {
      if (each.name == "file") each.default_text = "required";
    }
    made.finish = [](void* object, const MapView& view) {
      auto& init = *static_cast<S*>(object);
      init.where = view.at("file").str();
      for (const auto& [from, to] : init.rename) {
        const bool same = to.empty() || from.ends_with('*') == to.ends_with('*');
        if (!same) view.fail("rename", "'" + from + ": " + to + "': a * must end both names or neither");
      }
    };
    return made;
  }();
  return schema;
}

Key init_from_key() {
  Key result = section("init_from", &Config::init_from, init_from_schema,
                       "Weights to start from, of a .safetensors file or a checkpoint; null: random ones.");
  result.type = "map or null";
  result.default_text = "null";
  result.read_absent = false;
  result.child_object = [](const void* object) -> const void* {
    const InitFromConfig& init = static_cast<const Config*>(object)->init_from;
    return init.file.empty() ? nullptr : &init;
  };
  return std::move(result).also({"pretrained", "weights", "finetune_from", "init_checkpoint"});
}

}  // namespace lockstep
