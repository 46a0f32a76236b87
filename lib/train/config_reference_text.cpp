// What the reference says beyond the tables of keys.
#include "train/config_reference_text.h"

namespace lockstep {

const char* reference_introduction() {
  return R"(# The config file

Made from the table of keys that reads the file (`config_reference()`); a test keeps this page equal to it.
`lockstep config FILE` prints a file with every key that applies; its output is itself a config with the same meaning.

```yaml
model: {layers: [{linear: 30}, relu, {linear: 2}]}
data:
  train: {kind: csv, file: datasets/points.csv}
train: {epochs: 3, batch_size: 16}
optimizer: {kind: adamw, lr: 1e-4}
```

## Rules

Every mistake ends the program with one message that starts with `file:line:column` (columns count bytes, from 1).

**The file** is one YAML document in UTF-8, a map of sections, at most 1 MiB, nested at most 32 deep, with at most
100000 values. An unknown key is an error that names the nearest known one, also of another section; so are a key given
twice, a key that does not belong to the chosen `kind` (or `loss`), a tab in the indentation, a tag such as `!!float`, a
merge key `<<`, and a second document. Anchors and aliases (`&name`, `*name`) copy a whole value.

**Scalars** are read by what the key expects, from their text; the locale never matters.

| Type | Read | An error |
|---|---|---|
| integer | `3`, `+3`, `-3` | `3.0` and `1e3` (digits only), `010` (leading zero), `0x10`, `1_000`, `"3"`, out of 64 bits |
| number | `1`, `+1`, `.001`, `1.`, `1e-3`, `1.e-3`, `1E-3` | `nan`, `inf` (but where a key allows it), `01.5`, `1_000`, `1,5`, `"1e-3"`, `1e400` and `1e-400` (out of range) |
| true or false | `true`, `false` | `yes`, `no`, `on`, `off`, `True`, `TRUE`, `1`, `0`, `"true"` |
| text | anything, plain or quoted: `yes`, `1e-3` and `"1e-3"` are texts where a text is expected | empty text, line ends and control characters |
| integer or [height, width] | `2`, `[2, 3]` | |
| list | `[a, b]` or a line per `- item` | a single value |
| duration | seconds as a number, or with units, largest first: `90`, `1h30m`, `1.5h`, `2d` | `1:30:00`, `5 m`, `30m1h` |
| period | `1 epoch`, `2 epochs`, `200 steps`, `never` | `200`, `0 steps` |

Quotes make a text: a quoted number or boolean is an error. `null` (or `~`) is the same as leaving the key out, where a
key does not say otherwise; a key with nothing behind its colon is an error, unless it is a section.

**Paths** may be absolute. Relative ones start at the project root: the nearest directory, from the config's own
upwards, that holds `datasets/` or `configs/`; where there is none, the config's own directory. `{rank}` in the name of
a data file is the number of the rank (`"shards/part-{rank}.csv"`, in quotes inside a map in braces): every rank then
reads a file of its own and nothing is split.

**`--set KEY=VALUE`** changes the file before it is checked, in the order given. KEY is a dotted path, with numbers from
0 for entries of lists (`--set model.layers.0.linear=64`, `--set model.layers.2.dropout.p=0.1`); VALUE is YAML as inside
brackets (`8`, `[1, 2]`, `{kind: sgd, lr: 0.1}`, `"text, with comma"`, `null`). Maps on the way are made, entries of
lists must exist. The messages are the same, with `--set KEY` in front.

**Batch size.** `train.batch_size` is per rank and micro-step. Either it or `train.global_batch_size` is given, and
`global batch = batch_size x world_size x accumulate`.

**Uneven data.** A data set that all ranks share is dealt to them, and `sampler.uneven` says what happens to the samples
that do not divide: all ranks take part in every step, with `exact` some of them without samples. Where every rank has
data of its own (`{rank}`, `seed_per_rank`), the ranks may run out of it at different steps. All sizes are known at the
start, so nothing has to be asked in a step, and `sampler.early_end` says what happens then:

| early_end | The ranks that still have samples | PyTorch |
|---|---|---|
| `join` | go on; the others take part with zeros, every sample is trained on once | `distributed.average: ranks`: `join()`, which divides by all ranks. `samples`: each step is divided by the samples it has, as `join(divide_by_initial_world_size=False)` does where batches are equal |
| `stop` | end their epoch where the first rank runs out; what is left is not trained on in that epoch | stopping at the length of the shortest loader |
| `error` | do not start: the message names the rank that runs out first, and when | `join(throw_on_early_termination=True)`, which trains until then |

**Frozen parameters.** A group of `optimizer.groups` with `trainable: false` freezes what it matches, as
`requires_grad=False` does: no gradient is computed, backward ends at the lowest layer that trains, nothing of it is
reduced, clipped or updated, and the optimizer keeps no state for it. It is still broadcast at the start, and compared
by `train.replica_check`. A pattern that matches nothing and a model that is frozen as a whole are errors. A batch norm
whose weight and bias are frozen still normalises by the batch and moves its running statistics, as PyTorch's does in
training mode.

**Starting from weights.** `model.init_from` loads parameters and buffers by name before the first step; the optimizer
starts anew (to go on with a run, resume it instead). `file` is a `.safetensors` file with PyTorch's names and shapes,
a checkpoint, or a `last` or `best` file; of a checkpoint `model.safetensors` is read, and another of its files, such as
`ema.safetensors`, by naming it. `rename` brings names together, first match first: `{backbone.*: "*"}` takes a prefix
away, `{"*": "backbone.*"}` puts one on, `{fc.*: null}` leaves the old head out. A tensor of another shape is always an
error. With `strict: false` parameters that the file lacks keep their random values and tensors that the model lacks are
left out; a report says which. `num_batches_tracked` may be missing, as in files of old versions of PyTorch.

**Synthetic data** (`kind: synthetic`, `name: ...`), drawn as PyTorch draws it from `seed`:

| Name | Samples |
|---|---|
| `toy_train`, `toy_test` | 5 and 2 points of 2 classes; with `augment: k` k noisy copies of them (also `kind: toy`) |
| `toy16` | x = randn(16, 2), label x0 > 0 |
| `teacher` | x = randn(samples, features), label argmax(x @ randn(features, classes)); `shape: [features]` |
| `normal_regression` | x = randn(samples, shape), y = randn(samples, target_width) |
| `random` | x = randn(samples, shape), label randint(0, classes) |
| `identity` | x = row number, y = `values` repeated (none: the row number) |
| `constant` | x = 1, y = `values` repeated |

## Keys
)";
}

const char* reference_layers() {
  return R"(
## Layers

An entry of `model.layers` is a kind alone (`relu`) or a map with one kind and, beside it, optional `name` and `input`:

```yaml
model:
  layers:
    - {conv2d: {out: 8, kernel: 3, padding: 1}, name: conv1}
    - relu
    - {conv2d: {out: 8, kernel: 3, padding: 1}}
    - {add: conv1}                       # the entry before + the output of conv1
    - {max_pool2d: 2}
    - flatten
    - {linear: 10}
```

`name` is the prefix of the parameters' names and what other entries refer to; without it, the entry's index from 0, as
in `nn.Sequential`. Names are unique. `input` names an earlier layer whose output is read, or `input` for the network's
input; without it, the entry before.
)";
}

}  // namespace lockstep
