'use strict';
// Who gets which samples: the rules of lib/data/data_plan.h and lib/data/epoch_order.h, and the text of `lockstep plan`
// (lib/train/plan_report.cpp), which the tests compare with what this file makes.

const PLAN_EPOCHS_SHOWN = 3, PLAN_RANKS_SHOWN = 8, PLAN_ROWS_SHOWN = 8;

class EpochPlan {
  // spec: {samples, world_size, batch_size, accumulate, epochs, uneven, drop_last, max_steps (null: none)}
  constructor(spec) {
    const divide = (a, b) => Math.ceil(a / b);
    this.spec = spec;
    this.dealt = {
      exact: spec.samples,
      pad: divide(spec.samples, spec.world_size) * spec.world_size,
      drop: Math.floor(spec.samples / spec.world_size) * spec.world_size,
    }[spec.uneven];
    this.microBatch = spec.batch_size * spec.world_size;
    this.microSteps = spec.drop_last ? Math.floor(this.dealt / this.microBatch) : divide(this.dealt, this.microBatch);
    this.steps = divide(this.microSteps, spec.accumulate);
    this.globalBatch = this.microBatch * spec.accumulate;
    this.consumed = Math.min(this.microSteps * this.microBatch, this.dealt);
    this.padding = Math.max(this.dealt - spec.samples, 0);
    this.dropped = Math.max(spec.samples - this.consumed, 0);
    const all = spec.epochs * this.steps;
    this.totalSteps = spec.max_steps === null ? all : Math.min(all, spec.max_steps);
  }
  rankSamples(rank) {
    const {world_size} = this.spec;
    return Math.floor(this.dealt / world_size) + (rank < this.dealt % world_size ? 1 : 0);
  }
  rankConsumed(rank) { return Math.min(this.microSteps * this.spec.batch_size, this.rankSamples(rank)); }
  localCount(rank, microStep) {
    const left = this.rankSamples(rank) - microStep * this.spec.batch_size;
    return microStep < this.microSteps ? Math.min(Math.max(left, 0), this.spec.batch_size) : 0;
  }
  stepSamples(step) {
    if (step < 0 || step >= this.steps) return 0;
    return Math.min(this.consumed - step * this.globalBatch, this.globalBatch);
  }
  get emptyEverywhere() { return this.microSteps === 0; }
  get emptySomewhere() { return this.emptyEverywhere || this.localCount(this.spec.world_size - 1, 0) === 0; }
}

// MT19937, of which torch.randperm takes a word for each place but the last.
function randperm(n, seed) {
  const state = new Uint32Array(624), list = Array.from({length: n}, (_, i) => i);
  state[0] = seed >>> 0;
  for (let i = 1; i < 624; ++i) {
    const before = state[i - 1] ^ (state[i - 1] >>> 30);
    state[i] = Math.imul(1812433253, before) + i;
  }
  let at = 624;
  const word = () => {
    if (at === 624) {
      for (let i = 0; i < 624; ++i) {
        const y = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let y = state[at++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
  for (let i = 0; i + 1 < n; ++i) {
    const j = i + word() % (n - i);
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

// The list of an epoch, all ranks together, without padding. order: {shuffle, seed, reshuffle}
function epochOrder(samples, order, epoch) {
  if (!order.shuffle) return Array.from({length: samples}, (_, i) => i);
  return randperm(samples, order.seed + (order.reshuffle === false ? 0 : epoch));
}

// The sample at a place of the list that is dealt; past its end it begins again: padding.
const sampleAt = (list, position) => list[position % list.length];

function emptyLoaderText(plan) {
  const spec = plan.spec;
  if (!plan.emptySomewhere) return '';
  let geometry = `${spec.samples} samples, ${spec.world_size} ranks, batch ${spec.batch_size}`;
  if (spec.uneven === 'drop') geometry += ', uneven: drop';
  if (spec.drop_last) geometry += ', drop_last';
  if (plan.emptyEverywhere) {
    const keep = spec.drop_last ? ', or keep the last batch (sampler.drop_last: false)' : '';
    return `every loader is empty: ${geometry}: nothing to train; lower train.batch_size, start fewer ranks${keep}`;
  }
  const idle = spec.world_size - spec.samples;
  return `${idle} ranks have no samples: ${geometry}: they only take part in the reductions`;
}

function globalBatchLine(plan) {
  const {batch_size, world_size, accumulate} = plan.spec;
  return `global batch = batch_size ${batch_size} x world_size ${world_size} x accumulate ${accumulate} = ${plan.globalBatch}`;
}

// What `lockstep plan --world-size ...` prints.
function planText(base, worldSizes, order) {
  const plans = worldSizes.map(world_size => new EpochPlan({...base, world_size}));
  const lists = [];
  for (let epoch = 0; epoch < Math.min(base.epochs, PLAN_EPOCHS_SHOWN); ++epoch)
    lists.push(epochOrder(base.samples, order, epoch));
  const widths = [10, 16, 7, 7, 15, 12, 17, 15];
  const row = cells => cells.map((cell, i) => String(cell).padStart(widths[i])).join('  ') + '\n';
  let text = row(['world_size', 'samples per rank', 'padding', 'dropped', 'steps per epoch', 'global batch',
    'last step samples', 'optimizer steps']);
  for (const plan of plans) {
    const least = plan.rankSamples(plan.spec.world_size - 1), most = plan.rankSamples(0);
    text += row([plan.spec.world_size, least === most ? least : `${least}-${most}`, plan.padding, plan.dropped, plan.steps,
      plan.globalBatch, plan.stepSamples(plan.steps - 1), plan.totalSteps]);
  }
  for (const plan of plans) text += worldText(plan, lists);
  return text;
}

function worldText(plan, lists) {
  const ranks = plan.spec.world_size, empty = emptyLoaderText(plan);
  let text = `\nworld_size ${ranks}: ${globalBatchLine(plan)}\n`;
  if (empty) text += `WARNING world_size ${ranks}: ${empty}\n`;
  if (plan.emptyEverywhere) return text;
  lists.forEach((list, epoch) => {
    text += `  epoch ${epoch}, first samples\n`;
    for (let rank = 0; rank < Math.min(ranks, PLAN_RANKS_SHOWN); ++rank) {
      const rows = plan.rankConsumed(rank);
      text += `    rank ${rank}:`;
      for (let i = 0; i < Math.min(rows, PLAN_ROWS_SHOWN); ++i) text += ` ${sampleAt(list, rank + i * ranks)}`;
      text += rows > PLAN_ROWS_SHOWN ? ' ...\n' : rows === 0 ? ' none\n' : '\n';
    }
    if (ranks > PLAN_RANKS_SHOWN) text += `    and ${ranks - PLAN_RANKS_SHOWN} ranks more\n`;
  });
  return text;
}
