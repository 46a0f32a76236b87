'use strict';
// Pictures: cards with a caption and an export button; charts are Chart.js's, the dealing of samples is SVG.

// Okabe and Ito's colours, told apart with any colour vision; the first and the last depend on the paper's.
const colours = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#56b4e9', '#cc79a7', '#8a7f00', '#7f7f7f'];
const colourOf = i => colours[i % colours.length];
const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const charts = [];  // all that are shown, to be drawn anew in other colours

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);  // texts become text nodes, never markup
  return made;
}

function download(name, url) {
  const link = element('a', {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
}

const fileName = title => 'lockstep-' + title.toLowerCase().replace(/[^a-z0-9]+/g, '-');

function card(title, kind, exported) {
  const button = element('button', {type: 'button', title: `Save this picture as ${kind}`}, kind);
  button.addEventListener('click', () => download(`${fileName(title)}.${kind.toLowerCase()}`, exported()));
  return element('figure', {}, element('figcaption', {}, element('span', {}, title), button));
}

// The chart on the page's paper, at its own resolution.
function pngOf(chart) {
  const canvas = element('canvas', {width: chart.canvas.width, height: chart.canvas.height});
  const context = canvas.getContext('2d');
  context.fillStyle = variable('--card');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(chart.canvas, 0, 0);
  return canvas.toDataURL('image/png');
}

function drawChart(place, title, config) {
  let chart = null;
  const figure = card(title, 'PNG', () => pngOf(chart));
  const canvas = element('canvas', {role: 'img', 'aria-label': title});
  figure.append(element('div', {class: 'frame'}, canvas));
  place.append(figure);
  chart = new Chart(canvas, config);
  charts.push(chart);
}

function dropCharts(place) {
  for (const chart of charts.filter(one => place.contains(one.canvas))) {
    charts.splice(charts.indexOf(chart), 1);
    chart.destroy();
  }
  place.replaceChildren();
}

function useColours() {
  Chart.defaults.color = variable('--ink');
  Chart.defaults.borderColor = variable('--line');
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.plugins.legend.position = 'bottom';
  Chart.defaults.plugins.legend.labels.boxWidth = 18;
}

const axisTitle = text => ({display: true, text});

// curves: [{label, points: [[x, y], ...]}]; points without a number are left out. Curves that lie on each other stay
// visible: each later one is thinner.
function lineChart(place, title, xLabel, curves) {
  const datasets = curves.map((curve, i) => ({
    label: curve.label,
    data: curve.points.filter(([x, y]) => x !== null && y !== null).map(([x, y]) => ({x, y})),
    borderColor: colourOf(i),
    backgroundColor: colourOf(i),
    borderWidth: Math.min(1.5 + 1.3 * (curves.length - 1 - i), 8),
    pointRadius: curve.points.length > 40 ? 0 : 2,
  }));
  drawChart(place, title, {
    type: 'line',
    data: {datasets},
    options: {
      parsing: false,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {x: {type: 'linear', title: axisTitle(xLabel)}, y: {title: axisTitle(title)}},
      plugins: {decimation: {enabled: true, algorithm: 'min-max'}},
    },
  });
}

// rows: names; phases: [{label, values: one per row}], stacked, in milliseconds.
function phaseChart(place, title, rows, phases) {
  drawChart(place, title, {
    type: 'bar',
    data: {labels: rows, datasets: phases.map((phase, i) => ({label: phase.label, data: phase.values, backgroundColor: colourOf(i)}))},
    options: {
      indexAxis: 'y',
      scales: {x: {stacked: true, title: axisTitle('milliseconds per step')}, y: {stacked: true}},
    },
  });
}

// Ranks as rows, places of the list as cells, steps told apart by shade; padding is dashed, no sample is a dash.
function dealPicture(place, plan, list) {
  const most = {ranks: 16, columns: 48}, size = Math.max(30, 8 * String(plan.spec.samples).length + 12), left = 64, top = 34, tall = 30;
  const {world_size, batch_size, accumulate} = plan.spec;
  const ranks = Math.min(world_size, most.ranks);
  const columns = Math.min(plan.microSteps * batch_size, most.columns);
  const width = left + columns * size + 10, height = top + ranks * tall + 24;
  const ink = variable('--ink'), paper = variable('--paper'), ground = variable('--card');
  const svg = (tag, attributes, text = '') => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const picture = svg('svg', {xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}`,
    'font-family': 'sans-serif', 'font-size': 12, role: 'img'});
  picture.append(svg('rect', {width, height, fill: ground}));
  for (let rank = 0; rank < ranks; ++rank) {
    const y = top + rank * tall;
    picture.append(svg('text', {x: 6, y: y + 20, fill: ink}, `rank ${rank}`));
    for (let column = 0; column < columns; ++column) {
      const position = rank + column * world_size, x = left + column * size;
      const microStep = Math.floor(column / batch_size), step = Math.floor(microStep / accumulate);
      const given = column < plan.rankConsumed(rank), padded = position >= plan.spec.samples;
      if (column % batch_size === 0 && rank === 0)
        picture.append(svg('line', {x1: x, x2: x, y1: top - 8, y2: height - 20, stroke: ink, 'stroke-width': microStep % accumulate ? 0.5 : 2}));
      if (column % (batch_size * accumulate) === 0 && rank === 0)
        picture.append(svg('text', {x: x + 4, y: top - 14, fill: ink}, `step ${step}`));
      if (given)
        picture.append(svg('rect', {x: x + 2, y: y + 2, width: size - 4, height: tall - 4, rx: 4, stroke: colourOf(step),
          fill: padded ? paper : colourOf(step), 'fill-opacity': padded ? 1 : 0.3, 'stroke-dasharray': padded ? '3 3' : 'none'}));
      picture.append(svg('text', {x: x + size / 2, y: y + 20, fill: ink, 'text-anchor': 'middle'},
        given ? String(sampleAt(list, position)) : '–'));
    }
  }
  const more = [];
  if (world_size > ranks) more.push(`${world_size - ranks} ranks more`);
  if (plan.microSteps * batch_size > columns) more.push('later samples left out');
  if (plan.padding > 0) more.push('dashed: padding');
  picture.append(svg('text', {x: 6, y: height - 6, fill: ink}, more.join(', ')));
  const figure = card('Samples of each rank in epoch 0', 'SVG', () =>
    'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(new XMLSerializer().serializeToString(picture)));
  figure.append(element('div', {class: 'scroll'}, picture));
  place.replaceChildren(...figure.childNodes);
}
