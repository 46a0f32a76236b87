#include "mistakes.h"

namespace lockstep::test {

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> table{
      {.what = "The config file is missing",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfg.yaml"},
       .told = {"confg.yaml: cannot open the config file: No such file or directory", "did you mean 'config.yaml'?"}},
      {.what = "The config is a folder",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERfolder"},
       .told = {"folder: is a directory; expected a config file"}},
      {.what = "The config is empty",
       .config = "",
       .arguments = {"train", "FOLDERconfig.yaml"},
       .told = {"config.yaml:1:1: the file is empty; a config needs model and data"}},
      {.what = "Tabs indent",
       .config = "model:\n"
                 "\tlayers: [relu]\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:1: tab in the indentation; use spaces"}},
      {.what = "A bracket is not closed",
       .config = "model: {layers: [{linear: 4}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:1: end of", "is a bracket or a quote before it not closed?"}},
      {.what = "A section is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "optimiser: {lr: 0.1}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:1: unknown key 'optimiser' at the top level; did you mean 'optimizer'?"}},
      {.what = "A key of `run` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "run: {dri: x}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:7: unknown key 'dri' in run; did you mean 'dir'?"}},
      {.what = "A key of `train` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epoch: 3}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:9: unknown key 'epoch' in train; did you mean 'epochs'?"}},
      {.what = "A key of `sampler` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "sampler: {shufle: true}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:11: unknown key 'shufle' in sampler; did you mean 'shuffle'?"}},
      {.what = "A key of `optimizer` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "optimizer: {learning_rate: 0.1}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:13: unknown key 'learning_rate' in optimizer; did you mean 'lr'?"}},
      {.what = "A key of `eval` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "eval: {evry: 1 epoch}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:8: unknown key 'evry' in eval; did you mean 'every'?"}},
      {.what = "A key of `checkpoint` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "checkpoint: {evry: 10}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:14: unknown key 'evry' in checkpoint; did you mean 'every'?"}},
      {.what = "A key of `log` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "log: {evrey: 10}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:7: unknown key 'evrey' in log; did you mean 'every'?"}},
      {.what = "A key of `distributed` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "distributed: {backnd: mpi}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:15: unknown key 'backnd' in distributed; did you mean 'backend'?"}},
      {.what = "A key of `device` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "device: {thread: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:10: unknown key 'thread' in device; did you mean 'threads'?"}},
      {.what = "A key of `schedule` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "schedule: {kind: cosine, warmpu: 3}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:26: unknown key 'warmpu' in schedule; did you mean 'warmup'?"}},
      {.what = "A key of `data.train` is misspelt",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, nmae: toy_train}}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:33: unknown key 'nmae' in data.train; did you mean 'name'?"}},
      {.what = "A layer is misspelt",
       .config = "model: {layers: [{liner: 4}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:19: model.layers.0: unknown layer kind 'liner'; did you mean 'linear'?"}},
      {.what = "An option of a layer stands beside it",
       .config = "model: {layers: [{linear: 4, bias: false}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:30: model.layers.0: 'bias' belongs inside linear: {linear: {bias: ...}}"}},
      {.what = "A word where a number belongs",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: many}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:17: train.epochs: expected an integer, found 'many'"}},
      {.what = "yes for true",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "sampler: {shuffle: yes}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:20: sampler.shuffle: expected true or false, found 'yes'; write true or false"}},
      {.what = "A number in quotes",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "optimizer: {lr: \"0.1\"}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:17: optimizer.lr: expected a number", "remove the quotes"}},
      {.what = "A batch of nothing",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 0}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:32: train.batch_size: 0 is out of range; expected an integer 1 <= x"}},
      {.what = "A key of another optimizer",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "optimizer: {kind: sgd, betas: [0.9, 0.99]}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:24: optimizer.betas belongs to kind adam", "not sgd"}},
      {.what = "An optimizer that there is not",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "optimizer: {kind: adamx}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:19: optimizer.kind: expected sgd", "found 'adamx'; did you mean 'adam'?"}},
      {.what = "A section is given twice",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "train: {epochs: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:1: duplicate key 'train' at the top level; first given in line 3"}},
      {.what = "No model",
       .config = "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:1: missing key 'model'; for example model: {preset: mnist_convnet}"}},
      {.what = "No data",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:1: missing key 'data'; for example data: {train: {kind: csv, file: points.csv}}"}},
      {.what = "Two batch sizes",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, global_batch_size: 4, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:39: train.global_batch_size is given beside train.batch_size; give one of them"}},
      {.what = "A global batch that does not divide",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, global_batch_size: 5, accumulate: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:39: train.global_batch_size 5 is not divisible by world_size 1 x accumulate 2 = 2; "
                "nearest: 4 or 6"}},
      {.what = "A data file is missing",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: csv, file: nowhere.csv}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:15:",
                "nowhere.csv: no such file; relative paths start at the folder that holds configs/ or datasets/"}},
      {.what = "A data file is a folder",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: csv, file: folder}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:15:", "expected a regular file, found a folder"}},
      {.what = "A file that is no IDX file",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: idx, images: no.gz, labels: no.gz}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:15:", "IDX magic: expected", "is this the right file"}},
      {.what = "A word in a table",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: csv, file: text.csv}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:15:", "text.csv:3:3: expected a number in column 'b', found 'two'"}},
      {.what = "A label beyond the classes",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: csv, file: labels.csv, target: y, classes: 3}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:2:15:", "labels.csv:3:5: label: expected 0 to 2, found 7"}},
      {.what = "Fewer outputs than classes",
       .config = "model: {layers: [{linear: 1}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"the model's output is [1], but the labels have 2 classes: end with a layer of 2 outputs"}},
      {.what = "A linear layer on an image",
       .config = "model: {layers: [{conv2d: {out: 4, kernel: 3}}, {linear: 4}]}\n"
                 "data: {train: {kind: synthetic, name: random, samples: 20, shape: [3, 8, 8], classes: 4}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:49: linear: expected flat samples [features], found [4, 6, 6]: add flatten before it"}},
      {.what = "A kernel larger than the image",
       .config = "model: {layers: [{conv2d: {out: 4, kernel: 11}}, flatten, {linear: 4}]}\n"
                 "data: {train: {kind: synthetic, name: random, samples: 20, shape: [3, 8, 8], classes: 4}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:18: conv2d: a kernel that spans 11 does not fit into [3, 8, 8] with padding 0: a "
                "smaller kernel, or more padding"}},
      {.what = "A sum of two shapes",
       .config = "model: {layers: [{conv2d: {out: 4, kernel: 3, padding: 1}, name: a}, {conv2d: {out: 8, kernel: 3, "
                 "padding: 1}}, {add: a}, flatten, {linear: 4}]}\n"
                 "data: {train: {kind: synthetic, name: random, samples: 20, shape: [3, 8, 8], classes: 4}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:113: add: expected two tensors of one shape, found [8, 8, 8] and [4, 8, 8]; a conv2d of "
                "kernel 1"}},
      {.what = "A layer reads a later one",
       .config = "model: {layers: [{add: b}, {linear: 2, name: b}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:24: model.layers.0.add: the layer 'b' does not come before this one"}},
      {.what = "Two layers of one name",
       .config = "model: {layers: [{linear: 2, name: a}, {linear: 2, name: a}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:1:58: model.layers.1: the name 'a' is taken by model.layers.0"}},
      {.what = "Batch norm over one sample",
       .config = "model: {layers: [{linear: 4}, batch_norm, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 1}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"Expected more than 1 value per channel when training, but in step 0 rank 0 has one sample for the "
                "batch norm '1': take a larger train.batch_size"}},
      {.what = "Augmentation of what is no image",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "data.augmentation.flip=0.5"},
       .told = {"data.augmentation: expected images [channels, height, width], found samples of shape [2]"}},
      {.what = "Every sample is dropped",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 8}\n"
                 "sampler: {drop_last: true}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told =
           {"every loader is empty: 5 samples, 1 ranks, batch 8, drop_last: nothing to train; lower train.batch_size",
            "keep the last batch"}},
      {.what = "Everything is frozen",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set",
                     "optimizer.groups=[{match: [\"*\"], trainable: false}]"},
       .told = {"nothing to train: all 4 parameters are frozen (trainable: false)"}},
      {.what = "A pattern that matches nothing",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set",
                     "optimizer.groups=[{match: [\"fc*\"], lr: 0.1}]"},
       .told = {"optimizer.groups[0].match[0]: no parameter matches 'fc*' (first parameter: 0.weight)"}},
      {.what = "A metric for another kind of target",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "eval.metrics=[r2]", "--set",
                     "data.val={kind: synthetic, name: toy_test}"},
       .told = {"eval.metrics: r2 needs a regression", "found class targets"}},
      {.what = "Early stopping without validation",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2, early_stopping: {patience: 2}}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:3:51: train.early_stopping needs evaluations, but there is no data.val"}},
      {.what = "A plateau schedule without validation",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "schedule: {kind: plateau, metric: val.loss}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:35: schedule.metric is val.loss but there is no data.val"}},
      {.what = "A schedule lacks what it needs",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "schedule: {kind: one_cycle}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"config.yaml:4:11: schedule: missing key 'max_lr' (kind one_cycle)"}},
      {.what = "A model that does not fit into memory",
       .config = "model: {layers: [{linear: 300000}, {linear: 300000}, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"rank(s) of this node need", "more memory (each: ", "but", "are free", "lower train.batch_size"},
       .ranks = 2},
      {.what = "The wrong number of ranks",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "distributed.world_size=4"},
       .told = {"config says distributed.world_size 4 but 2 ranks were launched (mpirun -np 4 ...)"},
       .ranks = 2},
      {.what = "Virtual ranks that the ranks do not divide",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "train.virtual_ranks=3"},
       .told = {"--set train.virtual_ranks: train.virtual_ranks must be a power of two"}},
      {.what = "A GPU where there is none",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "device.kind=cuda"},
       .told = {"device.kind cuda: ", "device.kind auto takes the CPU where there is no GPU"}},
      {.what = "NCCL without GPUs",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "distributed.backend=nccl"},
       .told = {"distributed.backend nccl: sums what lies on GPUs, which needs device.kind: cuda"}},
      {.what = "A run folder that cannot be made",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=/proc/lockstep"},
       .told = {"run.dir /proc/lockstep: cannot be made", "set run.dir to a folder that you may write to"}},
      {.what = "--set of an unknown key",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "train.batchsize=3"},
       .told = {"--set train.batchsize: unknown key 'batchsize' in train; did you mean 'batch_size'?"},
       .ranks = 2},
      {.what = "--set without a value",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "train.batch_size"},
       .told = {"--set train.batch_size: expected KEY=VALUE"}},
      {.what = "An option that is a key",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--epochs", "3"},
       .told = {"The following arguments were not expected",
                "lockstep: keys of the config are set like this: --set train.epochs=VALUE"}},
      {.what = "A command that there is not",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"trian", "FOLDERconfig.yaml"},
       .told = {"lockstep: no command 'trian'; did you mean 'train'?"}},
      {.what = "A checkpoint that there is not",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--resume", "FOLDERnone"},
       .told = {"none: no such checkpoint; --resume auto takes the newest of run.dir"}},
      {.what = "A run folder with checkpoints of another run",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERused", "--set", "checkpoint.every=1"},
       .told = {"used/checkpoints: an earlier run has left checkpoints here",
                "go on from it with --resume auto, choose another run.dir, or remove them with --overwrite"}},
      {.what = "Only damaged checkpoints",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERdamaged", "--set", "checkpoint.every=1",
                     "--resume", "auto"},
       .told = {"damaged/checkpoints: holds no whole checkpoint:", "model.safetensors: expected",
                "remove what is damaged to start anew"}},
      {.what = "Weights that there are not",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set",
                     "model.init_from.file=none.safetensors"},
       .told = {"--set model.init_from.file: model.init_from: ", "none.safetensors: is missing"}},
      {.what = "A learning rate that is far too high",
       .config = "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 50, batch_size: 2}\n"
                 "optimizer: {lr: 1e30}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun"},
       .told = {"the loss is not finite on rank 0 (rows", "lower optimizer.lr, clip with train.clip_norm"},
       .exit_code = 1},
      {.what = "Too little shared memory",
       .config = "model: {layers: [{linear: 400}, relu, {linear: 400}, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "distributed.backend=shm"},
       .told = {"shared memory: ", "bytes needed, /dev/shm has",
                "free: enlarge it (docker run --shm-size=2g) or set distributed.backend: mpi"},
       .ranks = 2,
       .prefix = {"unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /dev/shm && exec \"$@\"", "--"}},
      {.what = "A full disk",
       .config = "model: {layers: [{linear: 400}, relu, {linear: 400}, {linear: 2}]}\n"
                 "data: {train: {kind: synthetic, name: toy_train}}\n"
                 "train: {epochs: 1, batch_size: 2}\n"
                 "checkpoint: {every: 1}\n",
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERfull/run"},
       .told = {"the checkpoint of step 1 was not written: ", "No space left on device (the disk is full)"},
       .exit_code = 1,
       .prefix = {"unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=600k tmpfs FOLDERfull && exec \"$@\"", "--"}},
      {.what = "No GPU where `device.kind` is `cuda`",
       .config = kSound,
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "device.kind=cuda"},
       .told = {"device.kind cuda: this machine has no NVIDIA driver",
                "device.kind auto takes the CPU where there is no GPU"},
       .gpus = {"LOCKSTEP_SIM_GPUS=0"}},
      {.what = "The GPUs are hidden",
       .config = kSound,
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "device.kind=cuda"},
       .told = {"device.kind cuda: no CUDA-capable device is detected",
                "CUDA_VISIBLE_DEVICES=9 shows none of this machine's",
                "device.kind auto takes the CPU where there is no GPU"},
       .gpus = {"LOCKSTEP_SIM_GPUS=2", "CUDA_VISIBLE_DEVICES=9"}},
      {.what = "Two ranks for one GPU",
       .config = kSound,
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "device.kind=cuda"},
       .told = {"rank 1: device.kind cuda: ",
                "2 ranks on this node, but local rank 1 sees 1 GPU(s), all taken by other ranks",
                "start as many ranks per node as GPUs, or set device.oversubscribe: true to let ranks share one"},
       .ranks = 2,
       .gpus = {"LOCKSTEP_SIM_GPUS=1"}},
      {.what = "A busy GPU: another process has it for itself",  // cudaErrorDevicesUnavailable
       .config = kSound,
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "device.kind=cuda"},
       .told = {"rank 1: GPU 1: cudaSetDevice failed: CUDA-capable device(s) is/are busy or unavailable",
                "another process has this GPU for itself, or its compute mode lets none in: nvidia-smi shows both",
                "end that process, or give the job another GPU"},
       .ranks = 2,
       .gpus = {"LOCKSTEP_SIM_FAIL=1:cudaSetDevice:0=46"}},
      {.what = "A busy GPU: other processes fill its memory",  // cudaErrorMemoryAllocation
       .config = kSound,
       .arguments = {"train", "FOLDERconfig.yaml", "--set", "run.dir=FOLDERrun", "--set", "device.kind=cuda"},
       .told = {"rank 1: GPU 1: cudaMalloc of ", "bytes failed: out of memory",
                "nvidia-smi shows which processes hold the GPU's memory: end others, or lower train.batch_size"},
       .ranks = 2,
       .gpus = {"LOCKSTEP_SIM_FAIL=1:cudaMalloc:0=2"}},
  };
  return table;
}

}  // namespace lockstep::test
