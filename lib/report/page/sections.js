'use strict';
// The sections of the page, from the data that the program wrote into it. Texts of files are only ever text nodes.

const report = JSON.parse(document.getElementById('data').textContent);
const find = selector => document.querySelector(selector);

// rows: lists of texts and numbers; the first is the head.
function table(place, head, rows, caption = '') {
  const cell = value => typeof value === 'number'
    ? element('td', {class: 'number'}, shown(value))
    : element('td', {class: String(value).length > 48 ? 'long' : 'short'}, String(value ?? ''));
  const made = element('table', {}, element('thead', {}, element('tr', {}, ...head.map(name => element('th', {}, name)))),
    element('tbody', {}, ...rows.map(row => element('tr', {}, ...row.map(cell)))));
  if (caption) made.prepend(element('caption', {}, caption));
  place.append(element('div', {}, made));
  return made;
}

function shown(value) {
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(5)));
}

const last = list => list.length ? list[list.length - 1] : undefined;
const numberOr = (value, other = '') => value === null || value === undefined ? other : value;

function showRuns() {
  find('#about').textContent = `${report.runs.length} run${report.runs.length === 1 ? '' : 's'}, made by ${report.program}`;
  const rows = report.runs.map(run => {
    const evaluation = last(run.evals);
    return [run.label, run.world_size, run.state, numberOr(last(run.steps)?.step, -1) + 1, numberOr(last(run.steps)?.loss),
      evaluation ? Object.entries(evaluation.values).map(([name, value]) => `${name} ${shown(value)}`).join(', ') : '',
      numberOr(run.throughput), numberOr(run.seconds), run.parameters];
  });
  table(find('#runs .tables'), ['run', 'world_size', 'state', 'steps', 'training loss', 'last validation', 'samples/s',
    'seconds', 'parameters'], rows);
}

function showSweep() {
  if (!report.sweep) return;
  find('#sweep').hidden = false;
  const made = table(find('#sweep .tables'), report.sweep.columns, report.sweep.rows);
  report.sweep.failed.forEach((failed, i) => { if (failed) made.tBodies[0].rows[i].classList.add('failed'); });
  find('#sweep .notes').append(...report.sweep.notes.map(note => element('li', {}, note)));
}

function showCurves() {
  const place = find('#curves .pictures'), axis = find('#axis').value;
  dropCharts(place);
  const xLabel = find('#axis').selectedOptions[0].textContent;
  const seenAt = run => new Map(run.steps.map(line => [line.step, line.seen]));
  const draw = (title, curvesOf) => {
    const curves = report.runs.map(run => ({label: run.label, points: curvesOf(run)}));
    if (curves.some(curve => curve.points.some(point => point[1] !== null))) lineChart(place, title, xLabel, curves);
  };
  const ofSteps = key => run => run.steps.map(line => [axis === 'seen' ? line.seen : line.step, line[key]]);
  draw('training loss', ofSteps('loss'));
  const names = [...new Set(report.runs.flatMap(run => run.evals.flatMap(line => Object.keys(line.values))))];
  for (const name of names) {
    draw(`validation ${name}`, run => {
      const seen = seenAt(run);
      return run.evals.map(line => [axis === 'seen' ? numberOr(seen.get(line.step), null) : line.step, numberOr(line.values[name], null)]);
    });
  }
  draw('learning rate', ofSteps('lr'));
  draw('gradient norm', ofSteps('gradient_norm'));
  draw('images/s', ofSteps('samples_per_second'));
}

const milliseconds = (ranks, phase) => ranks.map(rank => 1000 * rank[phase]);
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;

function showTime() {
  const timed = report.runs.filter(run => run.times.length > 0);
  if (!timed.length) { find('#time').hidden = true; return; }
  const place = find('#time .pictures'), run = timed[Number(find('#time-run').value) || 0];
  dropCharts(place);
  phaseChart(place, `ranks of ${run.label}`, run.times.map((_, rank) => `rank ${rank}`),
    report.phases.map((label, phase) => ({label, values: milliseconds(run.times, phase)})));
  if (timed.length > 1) {
    phaseChart(place, 'all runs, mean over their ranks', timed.map(one => one.label),
      report.phases.map((label, phase) => ({label, values: timed.map(one => mean(milliseconds(one.times, phase)))})));
  }
}

function showBatches() {
  table(find('#batch .tables'), ['run', 'arithmetic', 'samples', 'steps per epoch'],
    report.runs.map(run => [run.label, run.arithmetic, run.samples, run.steps_per_epoch]));
}

// What the form says, kept within what a page can show.
function planOfForm() {
  const form = find('#plan').elements;
  const whole = name => {
    const {value, min, max} = form[name];
    return Math.min(Math.max(Math.trunc(Number(value)) || 0, Number(min)), Number(max));
  };
  return {
    spec: {samples: whole('samples'), world_size: whole('world_size'), batch_size: whole('batch_size'),
      accumulate: whole('accumulate'), epochs: whole('epochs'), uneven: form.uneven.value,
      drop_last: form.drop_last.checked, max_steps: null},
    order: {shuffle: form.shuffle.checked, seed: whole('seed')},
  };
}

function showPlan() {
  const {spec, order} = planOfForm(), plan = new EpochPlan(spec);
  const warning = emptyLoaderText(plan);
  find('#plan-warning').textContent = warning ? `Warning: ${warning}` : '';
  find('#plan-text').textContent = planText(spec, [spec.world_size], order);
  dealPicture(find('#plan-picture'), plan, epochOrder(spec.samples, order, 0));
  find('#plan-ranks').replaceChildren();
  const ranks = Math.min(spec.world_size, 64);
  table(find('#plan-ranks'), ['rank', 'samples', 'batches', 'last batch', 'empty micro-steps'],
    Array.from({length: ranks}, (_, rank) => {
      const samples = plan.rankConsumed(rank), batches = Math.ceil(samples / spec.batch_size);
      return [`rank ${rank}`, samples, batches, plan.localCount(rank, batches - 1), plan.microSteps - batches];
    }), ranks < spec.world_size ? `the first ${ranks} of ${spec.world_size} ranks` : '').parentElement.classList.add('scroll');
}

function showSettings() {
  const place = find('#settings .tables'), maps = report.runs.map(run => new Map(run.settings));
  const keys = [...new Set(report.runs.flatMap(run => run.settings.map(([key]) => key)))];
  const differing = keys.filter(key => key !== 'run.dir' && new Set(maps.map(map => map.get(key))).size > 1);
  if (report.runs.length > 1) {
    table(place, ['key', ...report.runs.map(run => run.label)],
      differing.map(key => [key, ...maps.map(map => map.get(key) ?? 'absent')]), 'Keys that differ between the runs');
  }
  for (const run of report.runs) {
    place.append(element('details', {}, element('summary', {}, `config of ${run.label}`), element('pre', {}, run.config)));
  }
}

function showEnvironment() {
  const names = [...new Set(report.runs.flatMap(run => Object.keys(run.environment)))];
  table(find('#environment .tables'), ['run', ...names], report.runs.map(run => [run.label, ...names.map(name => run.environment[name] ?? '')]));
}

function showAll() {
  useColours();
  showCurves();
  showTime();
  showPlan();
}

function begin() {
  report.runs.filter(run => run.times.length > 0).forEach((run, i) => find('#time-run').append(element('option', {value: i}, run.label)));
  for (const [name, value] of Object.entries(report.plan)) {
    const field = find('#plan').elements[name];
    if (field.type === 'checkbox') field.checked = value; else field.value = value;
  }
  showRuns();
  showSweep();
  showBatches();
  showSettings();
  showEnvironment();
  showAll();
  find('#axis').addEventListener('change', showCurves);
  find('#time-run').addEventListener('change', showTime);
  find('#plan').addEventListener('input', showPlan);
  find('#plan').addEventListener('submit', event => event.preventDefault());
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', showAll);
  find('#theme').addEventListener('click', () => {
    const theme = document.documentElement.dataset;
    const isDark = theme.theme ? theme.theme === 'dark' : dark.matches;
    theme.theme = isDark ? 'light' : 'dark';
    showAll();
  });
}

begin();
