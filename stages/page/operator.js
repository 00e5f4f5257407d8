// The operator's page: what the stages, the queues and the threads do now. All figures are
// differences of two documents of /stats/stream; darkroom-http(7) describes their members.
'use strict';

const COLOURS = ['#7a869a', '#a1887f', '#8e6cc9', '#2f7de1', '#1fa187', '#c98a1b', '#d1495b', '#6b8e23', '#5c6bc0'];
const WINDOW = 4; // documents, half a second each, over which rates are taken
const KEPT = 1200; // points of the charts: ten minutes
const SLOW = 20; // documents over which percentiles are taken
const NS = 'http://www.w3.org/2000/svg';
const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

function svg(name, attributes = {}, text) {
  const e = document.createElementNS(NS, name);
  set(e, attributes);
  if (text !== undefined) e.textContent = text;
  return e;
}

function set(e, attributes) {
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
}

const rounded = (x) => (x >= 100 || Number.isInteger(x) ? Math.round(x).toString() : x >= 10 ? x.toFixed(1) : x.toFixed(2));
const percent = (x) => `${Math.round(100 * Math.min(1, x))} %`;

// ---- documents ----

const documents = []; // the last SLOW + 1
const history = []; // points of the charts

// The daemon was started again if its figures went down.
function remember(d) {
  const last = documents[documents.length - 1];
  if (last && d.uptime_s < last.uptime_s) documents.length = history.length = 0;
  documents.push(d);
  if (documents.length > SLOW + 1) documents.shift();
}

const before = (n) => documents[Math.max(0, documents.length - 1 - n)];

// ---- figures ----

function workersOf(d) {
  const all = [];
  for (const group of d.scheduler.groups) {
    group.workers.forEach((worker, i) => all.push({
      ...worker, key: `${group.name} ${i}`,
      label: worker.core === undefined ? `${group.name} ${i}` : `core ${worker.core}`,
    }));
  }
  return all;
}

// Returns the share of the time that each thread has spent in each stage.
function shares(now, then) {
  const earlier = new Map(workersOf(then).map((w) => [w.key, w]));
  const ms = 1000 * (now.uptime_s - then.uptime_s);
  return workersOf(now).map((w) => {
    const old = earlier.get(w.key) || { stages: {} };
    const stages = Object.entries(w.stages).map(([name, s]) => {
      const was = old.stages[name] ? old.stages[name].busy_ms : 0;
      return { name, share: ms > 0 ? Math.max(0, (s.busy_ms - was) / ms) : 0 };
    }).filter((s) => s.share > 0.001);
    const busy = stages.reduce((sum, s) => sum + s.share, 0);
    const most = stages.reduce((best, s) => (s.share > best.share ? s : best), { name: '', share: 0 });
    return { label: w.label, busy, stages, most: busy > 0.02 ? most.name : '' };
  });
}

function stageFigures(now, then, threads) {
  const s = now.uptime_s - then.uptime_s;
  return now.stages.map((stage, i) => {
    const old = then.stages[i];
    const events = stage.events - old.events;
    const ms = stage.service.sum_ms - old.service.sum_ms;
    return {
      name: stage.name, queued: stage.queued, events: stage.events,
      out: s > 0 ? events / s : 0,
      into: s > 0 ? Math.max(0, (events + stage.queued - old.queued) / s) : 0,
      service: stage.service.count > old.service.count ? ms / (stage.service.count - old.service.count) : stage.service.mean_ms,
      busy: s > 0 ? ms / 1000 / s / Math.max(1, stage.threads) : 0,
      now: threads.filter((t) => t.most === stage.name).map((t) => t.label),
    };
  });
}

// Returns a quantile of the uploads between two documents, in ms; null without uploads.
function quantile(now, then, q) {
  const old = new Map(then.http.uploads.buckets.map((b) => [b.below_ms, b.count]));
  const buckets = now.http.uploads.buckets.map((b) => ({ ms: b.below_ms, n: b.count - (old.get(b.below_ms) || 0) }));
  let left = q * buckets.reduce((sum, b) => sum + b.n, 0);
  if (left === 0) return null;
  for (const b of buckets) {
    left -= b.n;
    if (left <= 0) return b.ms * 0.92; // the middle of the bucket
  }
  return null;
}

// A step of overload.degrade contains those before it.
const degraded = (d) => Math.max(0, ...d.overload.degrade.map((step) => step.images));
const refused = (d) => Object.values(d.http.rejections).reduce((sum, n) => sum + n, 0);

function point(now, then, slow) {
  const s = now.uptime_s - then.uptime_s;
  const rate = (a, b) => (s > 0 ? (a - b) / s : 0);
  return {
    t: now.uptime_s,
    images: rate(now.images.stored, then.images.stored),
    p50: quantile(now, slow, 0.5), p90: quantile(now, slow, 0.9), p99: quantile(now, slow, 0.99),
    flight: now.images.in_flight,
    memory: (now.memory.reserved_body_bytes + now.memory.reserved_image_bytes) / 1048576,
    refused: rate(refused(now), refused(then)),
    refusedAll: refused(now), degradedAll: degraded(now),
  };
}

// ---- charts ----

const CHARTS = [
  { title: 'Images stored', unit: '/s', lines: ['images'] },
  { title: 'Uploads: p50, p90, p99', unit: 'ms', lines: ['p50', 'p90', 'p99'] },
  { title: 'Images in flight', unit: '', lines: ['flight'] },
  { title: 'Memory reserved', unit: 'MiB', lines: ['memory'] },
  { title: 'Rejections', unit: '/s', lines: ['refused'], total: 'refusedAll' },
];

function makeCharts() {
  for (const chart of CHARTS) {
    chart.value = element('span', { class: 'value' }, '–');
    chart.svg = svg('svg', { viewBox: '0 0 600 64', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${chart.title}, the last 10 minutes` });
    chart.path = chart.lines.map((line, i) => chart.svg.appendChild(svg('path', { class: `l${i}` })));
    chart.key = element('p', { class: 'key' });
    $('charts').append(element('div', { class: 'chart' }, element('h3', {}, chart.title), chart.value, chart.svg, chart.key));
  }
}

function drawChart(chart) {
  const last = history[history.length - 1];
  const values = chart.lines.map((line) => (last[line] === null ? '–' : rounded(last[line])));
  const top = Math.max(1e-9, ...history.flatMap((p) => chart.lines.map((line) => p[line] || 0)));
  chart.value.replaceChildren(values.join(' / '), ' ', element('small', {}, chart.unit));
  chart.key.textContent = `highest ${rounded(top < 1e-6 ? 0 : top)} ${chart.unit}${chart.total ? `, ${last[chart.total]} in all, ${last.degradedAll} degraded` : ''}`;
  const span = Math.min(600, Math.max(60, last.t - history[0].t));
  chart.lines.forEach((line, i) => {
    let path = '';
    let pen = 'M';
    for (const p of history) {
      if (p[line] === null) { pen = 'M'; continue; }
      path += `${pen}${(600 - 600 * (last.t - p.t) / span).toFixed(1)} ${(62 - 60 * p[line] / top).toFixed(1)}`;
      pen = 'L';
    }
    chart.path[i].setAttribute('d', path);
  });
}

// ---- the graph ----

const BOX = { width: 216, height: 104, columns: 3, stepX: 330, stepY: 165, margin: 46 };
const drawn = { boxes: new Map(), edges: [] };

// Row by row, alternately to the right and to the left: the next stage is beside or below.
function place(i) {
  const row = Math.floor(i / BOX.columns);
  const column = row % 2 ? BOX.columns - 1 - i % BOX.columns : i % BOX.columns;
  return { x: BOX.margin + BOX.width / 2 + column * BOX.stepX, y: BOX.margin + BOX.height / 2 + row * BOX.stepY };
}

function border(box, to) {
  const part = Math.min(BOX.width / 2 / Math.abs(to.x - box.x || 1e-9), BOX.height / 2 / Math.abs(to.y - box.y || 1e-9));
  return { x: box.x + (to.x - box.x) * part, y: box.y + (to.y - box.y) * part };
}

// A curve to the left of its direction, so that both directions stand apart.
function curve(a, b) {
  const length = Math.hypot(b.x - a.x, b.y - a.y);
  const bend = 20 + length / 9;
  const middle = { x: (a.x + b.x) / 2 + (b.y - a.y) / length * bend, y: (a.y + b.y) / 2 - (b.x - a.x) / length * bend };
  const from = border(a, middle);
  const to = border(b, middle);
  return {
    path: `M${from.x} ${from.y}Q${middle.x} ${middle.y} ${to.x} ${to.y}`,
    label: { x: (from.x + 2 * middle.x + to.x) / 4, y: (from.y + 2 * middle.y + to.y) / 4 - 5 },
  };
}

function makeGraph(d) {
  const graph = $('graph');
  const rows = Math.ceil(d.stages.length / BOX.columns);
  const index = new Map(d.stages.map((s, i) => [s.name, i]));
  graph.replaceChildren();
  set(graph, { viewBox: `0 0 ${2 * BOX.margin + 2 * BOX.stepX + BOX.width} ${2 * BOX.margin + (rows - 1) * BOX.stepY + BOX.height}` });
  const marker = svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 8, refY: 4, markerUnits: 'userSpaceOnUse', markerWidth: 12, markerHeight: 12, orient: 'auto' });
  marker.append(svg('path', { d: 'M0 0L8 4L0 8z' }));
  graph.append(marker);
  drawn.edges = d.edges.filter((e) => e.from !== e.to).map((e) => {
    const c = curve(place(index.get(e.from)), place(index.get(e.to)));
    const path = svg('path', { class: 'edge', d: c.path, 'marker-end': 'url(#arrow)' });
    const title = path.appendChild(svg('title'));
    const label = svg('text', { class: 'soft', ...c.label });
    graph.append(path, label);
    return { from: e.from, to: e.to, path, label, title };
  });
  drawn.boxes.clear();
  d.stages.forEach((stage, i) => {
    const p = place(i);
    const group = svg('g', { 'data-stage': stage.name });
    const line = (dy, name) => group.appendChild(svg('text', { x: p.x, y: p.y + dy, class: name }));
    group.append(svg('rect', { class: 'box', x: p.x - BOX.width / 2, y: p.y - BOX.height / 2, width: BOX.width, height: BOX.height, rx: 10 }));
    const fill = group.appendChild(svg('rect', { x: p.x - BOX.width / 2, y: p.y - BOX.height / 2, width: BOX.width, height: BOX.height, rx: 10, fill: COLOURS[i % COLOURS.length] }));
    line(-30, 'name').textContent = stage.name;
    drawn.boxes.set(stage.name, { fill, queue: line(-10, ''), rate: line(8, ''), service: line(26, ''), now: line(43, 'soft') });
    graph.append(group);
  });
}

function drawGraph(figures, now, then) {
  const s = now.uptime_s - then.uptime_s;
  const old = new Map(then.edges.map((e) => [`${e.from} ${e.to}`, e.events]));
  for (const f of figures) {
    const box = drawn.boxes.get(f.name);
    box.fill.setAttribute('fill-opacity', (0.06 + 0.5 * Math.min(1, f.busy)).toFixed(2));
    box.queue.textContent = `${f.queued} queued`;
    box.rate.textContent = `${rounded(f.into)} in, ${rounded(f.out)} out /s`;
    box.service.textContent = `${rounded(f.service)} ms, ${percent(f.busy)} busy`;
    box.now.textContent = f.now.length > 4 ? `${f.now.length} threads` : f.now.join(', ');
  }
  for (const edge of drawn.edges) {
    const total = now.edges.find((e) => e.from === edge.from && e.to === edge.to).events;
    const rate = s > 0 ? (total - (old.get(`${edge.from} ${edge.to}`) || 0)) / s : 0;
    set(edge.path, { 'stroke-width': (0.8 + Math.min(11, 1.3 * Math.log2(1 + rate))).toFixed(1), 'stroke-dasharray': rate > 0 ? 'none' : '2 6' });
    edge.label.textContent = rate > 0 ? `${rounded(rate)} /s` : '';
    edge.title.textContent = `${edge.from} to ${edge.to}: ${rounded(rate)} events per second, ${total} in all`;
  }
}

// ---- tables ----

function row(table, key, make) {
  for (const r of table.rows) if (r.dataset.key === key) return r;
  const r = make();
  r.dataset.key = key;
  table.append(r);
  return r;
}

function drawStages(figures) {
  const body = $('stages').tBodies[0];
  for (const f of figures) {
    const r = row(body, f.name, () => element('tr', {}, element('th', { scope: 'row' }, f.name), ...Array.from({ length: 7 }, () => element('td'))));
    [f.queued, rounded(f.into), rounded(f.out), rounded(f.service), percent(f.busy), f.events, f.now.join(', ')]
      .forEach((value, i) => { r.cells[i + 1].textContent = value; });
  }
}

function drawThreads(threads, stages) {
  const body = $('cores').tBodies[0];
  const seen = new Set(threads.map((t) => t.label));
  for (const r of [...body.rows]) if (!seen.has(r.dataset.key)) r.remove();
  for (const t of threads) {
    const r = row(body, t.label, () => {
      const bar = element('td', { class: 'bar' });
      bar.append(svg('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' }));
      return element('tr', {}, element('th', { scope: 'row' }, t.label), element('td'), bar, element('td'));
    });
    const scale = 100 / Math.max(1, t.busy);
    let at = 0;
    r.cells[1].textContent = percent(t.busy);
    r.cells[3].textContent = t.most;
    r.cells[2].firstChild.replaceChildren(...t.stages.map((s) => {
      const part = svg('rect', { x: at.toFixed(2), width: (s.share * scale).toFixed(2), height: 10, fill: COLOURS[stages.indexOf(s.name) % COLOURS.length] });
      at += s.share * scale;
      return part;
    }));
  }
}

function makeLegend(d) {
  $('legend').replaceChildren(...d.stages.map((s, i) => {
    const swatch = element('i', { 'aria-hidden': 'true' });
    swatch.style.background = COLOURS[i % COLOURS.length];
    return element('li', {}, swatch, s.name);
  }));
}

// ---- each document ----

function show(d) {
  remember(d);
  const then = before(WINDOW);
  history.push(point(d, then, before(SLOW)));
  if (history.length > KEPT) history.shift();
  if (drawn.boxes.size !== d.stages.length) { makeGraph(d); makeLegend(d); }
  if (document.hidden) return;
  const threads = shares(d, then);
  const figures = stageFigures(d, then, threads);
  $('state').className = d.draining ? 'bad' : '';
  const minutes = Math.floor(d.uptime_s / 60);
  const text = `${d.draining ? 'draining, ' : ''}policy ${d.scheduler.policy}, up ${minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`}, ${d.images.stored} stored, ${d.http.connections} connection${d.http.connections === 1 ? '' : 's'}`;
  if ($('state').textContent !== text) $('state').textContent = text;
  for (const chart of CHARTS) drawChart(chart);
  drawGraph(figures, d, then);
  drawStages(figures);
  drawThreads(threads, d.stages.map((s) => s.name));
  const policy = $('policy');
  if (document.activeElement !== policy && policy.value !== d.scheduler.policy) policy.value = d.scheduler.policy;
}

// ---- control ----

function showKeys(keys) {
  for (const input of document.querySelectorAll('[data-key]')) {
    const key = keys[input.dataset.key];
    if (!key) continue;
    if (input.tagName === 'SELECT') input.replaceChildren(...key.choices.map((c) => element('option', { value: c }, c)));
    input.value = key.value;
  }
}

async function control(input) {
  const result = $('result');
  result.className = '';
  result.textContent = `applying ${input.dataset.key} = ${input.value}`;
  try {
    const answer = await fetch(`/control?${input.dataset.key}=${encodeURIComponent(input.value.trim())}`, { method: 'POST', headers: { 'X-Darkroom-Control': '1' } });
    const body = await answer.json();
    if (answer.ok) {
      result.textContent = `applied: ${input.dataset.key} = ${input.value}`;
      showKeys(body);
      return;
    }
    result.className = 'bad';
    result.textContent = `${body.title}: ${body.detail}`;
    loadControl();
  } catch {
    result.className = 'bad';
    result.textContent = 'The server cannot be reached.';
  }
}

async function loadControl() {
  const answer = await fetch('/control');
  if (!answer.ok) return;
  const keys = await answer.json();
  $('control').hidden = !keys.enabled;
  $('read-only').hidden = keys.enabled;
  $('read-only').textContent = keys.why || '';
  showKeys(keys);
}

// ---- begin ----

makeCharts();
for (const input of document.querySelectorAll('[data-key]')) input.addEventListener('change', () => control(input));
$('control').addEventListener('submit', (e) => e.preventDefault());
loadControl();

// The stream is open only while somebody looks. A page that was left is kept by the browser, and its
// stream would take one of the few connections to this server.
let stream = null;
function watch() {
  if (stream || document.hidden) return;
  stream = new EventSource('/stats/stream');
  stream.onmessage = (message) => show(JSON.parse(message.data));
  stream.onerror = () => {
    $('state').className = 'bad';
    $('state').textContent = 'no connection to the server; trying again';
  };
}
function unwatch() {
  if (stream) stream.close();
  stream = null;
}
addEventListener('pageshow', watch);
addEventListener('pagehide', unwatch);
document.addEventListener('visibilitychange', () => (document.hidden ? unwatch() : watch()));
watch();
