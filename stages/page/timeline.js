// The timeline of a trace: each visit of a thread to a stage, as src/sched/trace_format.h has it.
// It is recorded by POST /trace, or read from a file of darkroomd ctl trace.
'use strict';

const VISIT = 1;
const CALL = 2; // of a stage within a visit
const END = 7;
const LANE = 24; // pixels of a thread, its gap included
const AXIS = 20;
const LEAST = 5e-6; // seconds that the whole width shows
const trace = { lanes: [], stages: [], end: 0, from: 0, to: 0 };

// Returns the trace of an ArrayBuffer, with times in seconds since its begin.
function readTrace(buffer) {
  const view = new DataView(buffer);
  const text = (from, to) => new TextDecoder().decode(new Uint8Array(buffer, from, to - from));
  if (buffer.byteLength < 40 || text(0, 8) !== 'DRTRACE\n') throw new Error('This is not a trace.');
  const little = view.getUint32(8, true) === 0x01020304;
  const u32 = (at) => view.getUint32(at, little);
  const ns = (at) => u32(at + (little ? 4 : 0)) * 4294967296 + u32(at + (little ? 0 : 4));
  if (u32(12) !== 1) throw new Error(`This trace has version ${u32(12)}; the page reads version 1.`);
  const size = u32(16);
  const first = 40 + u32(20);
  const names = JSON.parse(text(40, first));
  const begin = ns(24);
  const lanes = new Map();
  let end = 0;
  let complete = false;
  for (let at = first; at + size <= buffer.byteLength; at += size * (1 + view.getUint16(at + 38, little))) {
    const type = view.getUint8(at + 40);
    complete = type === END;
    if ((type !== VISIT && type !== CALL) || !u32(at + 28)) continue; // others found no event
    const group = view.getUint8(at + 41);
    const worker = view.getUint8(at + 42);
    const core = view.getUint16(at + 36, little);
    const key = group * 256 + worker;
    if (!lanes.has(key)) lanes.set(key, { key, label: `${names.groups[group]} ${worker}`, cores: new Set(), visits: [] });
    const lane = lanes.get(key);
    const visit = { from: (ns(at) - begin) / 1e9, stage: view.getUint8(at + 43), events: u32(at + 28), queued: u32(at + 32), call: type === CALL };
    visit.to = visit.from + ns(at + 8) / 1e9;
    lane.cores.add(core);
    lane.visits.push(visit);
    end = Math.max(end, visit.to);
  }
  const sorted = [...lanes.values()].sort((a, b) => a.key - b.key);
  for (const lane of sorted) {
    lane.visits.sort((a, b) => a.from - b.from || b.to - a.to); // what is within another is above it
    lane.longest = lane.visits.reduce((most, v) => Math.max(most, v.to - v.from), 0);
    if (lane.cores.size === 1) lane.label += `, core ${[...lane.cores][0]}`;
  }
  return { lanes: sorted, stages: names.stages, end, complete };
}

const duration = (s) => (s >= 1 ? `${s.toFixed(2)} s` : s >= 1e-3 ? `${(1e3 * s).toFixed(2)} ms` : `${(1e6 * s).toFixed(1)} µs`);

// ---- drawing ----

// Returns the index of the first visit that may end after a time.
function firstVisit(lane, time) {
  let low = 0;
  let high = lane.visits.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.visits[middle].from + lane.longest < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function drawTimeline() {
  const canvas = $('timeline');
  const scale = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  const height = AXIS + LANE * trace.lanes.length;
  const style = getComputedStyle(document.documentElement);
  const span = trace.to - trace.from;
  const x = (time) => (time - trace.from) / span * width;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = `${height}px`;
  const c = canvas.getContext('2d');
  c.scale(scale, scale);
  c.font = '12px system-ui, sans-serif';
  const least = 90 * span / width; // room for a label
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= least);
  for (let time = Math.ceil(trace.from / step) * step; time < trace.to; time += step) {
    c.fillStyle = style.getPropertyValue('--line');
    c.fillRect(x(time), 0, 1, height);
    c.fillStyle = style.getPropertyValue('--soft');
    if (x(time) + 70 < width) c.fillText(`${+(1e3 * time).toPrecision(9)} ms`, x(time) + 4, 13);
  }
  trace.lanes.forEach((lane, i) => {
    const y = AXIS + LANE * i;
    for (let k = firstVisit(lane, trace.from); k < lane.visits.length && lane.visits[k].from < trace.to; k++) {
      const v = lane.visits[k];
      c.fillStyle = COLOURS[v.stage % COLOURS.length];
      c.fillRect(x(v.from), y + (v.call ? 10 : 3), x(v.to) - x(v.from), v.call ? 11 : 18);
    }
    const label = c.measureText(lane.label).width;
    c.fillStyle = style.getPropertyValue('--card');
    c.fillRect(0, y + 4, label + 8, 16);
    c.fillStyle = style.getPropertyValue('--text');
    c.fillText(lane.label, 4, y + 16);
  });
  canvas.dataset.from = trace.from;
  canvas.dataset.to = trace.to;
  $('range').textContent = `${duration(span)} from ${(1e3 * trace.from).toFixed(3)} ms`;
}

// Shows the span around a time; both stay within the trace.
function showSpan(middle, span) {
  const whole = Math.min(Math.max(span, LEAST), trace.end);
  trace.from = Math.min(Math.max(0, middle - whole / 2), trace.end - whole);
  trace.to = trace.from + whole;
  requestAnimationFrame(drawTimeline);
}

const MOVES = {
  in: (m, s) => showSpan(m, s / 2), out: (m, s) => showSpan(m, s * 2),
  left: (m, s) => showSpan(m - s / 4, s), right: (m, s) => showSpan(m + s / 4, s), all: () => showSpan(0, trace.end),
};
const KEYS = { '+': 'in', '=': 'in', '-': 'out', ArrowLeft: 'left', ArrowRight: 'right', Home: 'all' };
const move = (name) => MOVES[name]((trace.from + trace.to) / 2, trace.to - trace.from);

function tellVisit(event) {
  const box = $('timeline').getBoundingClientRect();
  const time = trace.from + (event.clientX - box.left) / box.width * (trace.to - trace.from);
  const lane = trace.lanes[Math.floor((event.clientY - box.top - AXIS) / LANE)];
  let found = null;
  if (lane) for (let k = firstVisit(lane, time); k < lane.visits.length && lane.visits[k].from <= time; k++) if (lane.visits[k].to >= time) found = lane.visits[k];
  $('visit').textContent = found ? `${lane.label}: ${trace.stages[found.stage]}${found.call ? ', called' : ''}, ${duration(found.to - found.from)} from ${(1e3 * found.from).toFixed(3)} ms, events ${found.events}${found.call ? '' : `, queue ${found.queued}`}` : '';
}

// ---- a new trace ----

function tabulate(read) {
  const sums = read.stages.map((name) => ({ name, visits: 0, events: 0, total: 0, longest: 0 }));
  for (const lane of read.lanes) for (const v of lane.visits) {
    const sum = sums[v.stage];
    if (!sum) continue;
    sum.visits += 1;
    sum.events += v.events;
    sum.total += v.to - v.from;
    sum.longest = Math.max(sum.longest, v.to - v.from);
  }
  $('sums').tBodies[0].replaceChildren(...sums.map((s) => element('tr', {}, element('th', { scope: 'row' }, s.name),
    ...[s.visits, s.events, (1e3 * s.total).toFixed(2), (1e3 * s.longest).toFixed(2)].map((x) => element('td', {}, x)))));
}

function showTrace(buffer) {
  const read = readTrace(buffer);
  if (!read.lanes.length) throw new Error('No thread has found work.');
  Object.assign(trace, read);
  $('drawn').hidden = false;
  tabulate(read);
  showSpan(0, trace.end);
  const visits = read.lanes.reduce((sum, lane) => sum + lane.visits.length, 0);
  tellTrace(`${visits} visits in ${duration(trace.end)}${read.complete ? '' : '; the end is missing'}`);
}

function tellTrace(text, isBad = false) {
  $('trace-state').className = isBad ? 'bad' : '';
  $('trace-state').textContent = text;
}

async function recordTrace() {
  const seconds = Number($('seconds').value);
  $('record').disabled = true;
  tellTrace(`recording ${seconds} s`);
  try {
    const answer = await fetch(`/trace?seconds=${seconds}`, { method: 'POST', headers: { 'X-Darkroom-Control': '1' } });
    if (answer.ok) {
      const buffer = await answer.arrayBuffer();
      if (!buffer.byteLength) throw new Error('Another trace is on.');
      showTrace(buffer);
    } else {
      const problem = await answer.json();
      throw new Error(`${problem.title}: ${problem.detail}`);
    }
  } catch (error) {
    tellTrace(error instanceof TypeError ? 'The server cannot be reached.' : error.message, true);
  }
  $('record').disabled = false;
}

$('record').addEventListener('click', recordTrace);
$('trace-file').addEventListener('change', async (e) => {
  try {
    if (e.target.files.length) showTrace(await e.target.files[0].arrayBuffer());
  } catch (error) {
    tellTrace(error.message, true);
  }
});
for (const button of document.querySelectorAll('[data-move]')) button.addEventListener('click', () => move(button.dataset.move));
$('timeline-box').addEventListener('keydown', (e) => {
  if (!KEYS[e.key] || e.ctrlKey || e.altKey || e.metaKey) return;
  e.preventDefault();
  move(KEYS[e.key]);
});
$('timeline-box').addEventListener('wheel', (e) => {
  if (!e.ctrlKey) return;
  e.preventDefault();
  const box = $('timeline').getBoundingClientRect();
  const share = (e.clientX - box.left) / box.width;
  const span = Math.min(trace.end, (trace.to - trace.from) * (e.deltaY > 0 ? 1.25 : 0.8));
  const under = trace.from + share * (trace.to - trace.from); // this time stays under the pointer
  showSpan(under + (0.5 - share) * span, span);
}, { passive: false });
$('timeline').addEventListener('pointermove', (e) => {
  if (e.buttons === 1 && e.pointerType === 'mouse') {
    const span = trace.to - trace.from;
    showSpan((trace.from + trace.to) / 2 - e.movementX / $('timeline').clientWidth * span, span);
  }
  tellVisit(e);
});
$('timeline').addEventListener('pointerdown', tellVisit);
window.addEventListener('resize', () => { if (trace.lanes.length) requestAnimationFrame(drawTimeline); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { if (trace.lanes.length) drawTimeline(); });
