// The public page: uploads with their results, and a gallery. It uses the requests that any client
// may make; darkroom-http(7) describes them.
'use strict';

const AT_ONCE = 2;
const PAGE = 24;
const COLOURS = {
  read: '#7a869a', accept_read: '#7a869a', http_parse: '#7a869a', form_decode: '#8e6cc9',
  jpeg_decode: '#2f7de1', scale: '#1fa187', blur: '#c98a1b', jpeg_encode: '#d1495b',
  disk_write: '#6b8e23', disk_read: '#9acd32', stats: '#7a869a', queue: '#b8bfca',
};

const $ = (id) => document.getElementById(id);

// ---- elements ----

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'onclick') e.addEventListener('click', value);
    else if (value === true) e.setAttribute(key, '');
    else if (value !== undefined && value !== false) e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

function bytes(n) {
  if (n < 1000) return `${n} B`;
  return n < 1e6 ? `${(n / 1e3).toPrecision(3)} kB` : `${(n / 1e6).toPrecision(3)} MB`;
}

const say = (text) => { $('status').textContent = text; };

// ---- the server ----

function headers() {
  const token = $('token').value.trim();
  return token ? { Authorization: `Bearer ${token}` } : {};
}

function problemOf(status, text) {
  try {
    const p = JSON.parse(text);
    return { status, title: p.title || `Status ${status}`, detail: p.detail || '', errors: p.errors || [] };
  } catch {
    return { status, title: `The server answered ${status}`, detail: text.slice(0, 200), errors: [] };
  }
}

function showProblem(box, problem) {
  box.append(element('p', { class: 'error', role: 'alert' },
    element('strong', {}, problem.title), problem.detail));
  if (problem.status === 401 || problem.status === 403) $('token-box').open = true;
}

// ---- one upload ----

const waiting = [];
let running = 0;

// Returns a line of the list.
function add(file) {
  const state = element('span', { class: 'state' }, 'waiting');
  const bar = element('progress', { max: 100, value: 0, 'aria-label': `Upload of ${file.name || 'pasted picture'}` });
  const item = element('li', {},
    element('div', { class: 'head' },
      element('span', { class: 'name' }, file.name || 'pasted picture'),
      element('span', {}, bytes(file.size)), state), bar);
  waiting.push({ file, item, state, bar, begun: 0 });
  return item;
}

// Formats that the server reads, unless its configuration says otherwise: then it answers 415.
const READ = ['image/jpeg', 'image/png', 'image/webp', 'image/avif'];

// Returns the file, or a JPEG of it on white. A picture that the browser cannot read is sent as it is,
// and refused in words.
async function asJpeg(file) {
  if (!file.type.startsWith('image/') || file.type === 'image/jpeg') return file;
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    return file;
  }
  const canvas = element('canvas', { width: picture.width, height: picture.height });
  const context = canvas.getContext('2d');
  context.fillStyle = '#fff';
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(picture, 0, 0);
  picture.close();
  const blob = await new Promise((done) => { canvas.toBlob(done, 'image/jpeg', 0.95); });
  if (!blob) return file; // too large for a canvas
  return new File([blob], `${file.name.replace(/\.[^.]*$/, '') || 'pasted'}.jpg`, { type: 'image/jpeg' });
}

function next() {
  while (running < AT_ONCE && waiting.length > 0) {
    running++;
    upload(waiting.shift());
  }
}

function finish(u, text) {
  u.bar.remove();
  u.state.textContent = text;
  say(`${u.file.name}: ${text}`);
  running--;
  next();
}

async function upload(u) {
  u.begun = performance.now();
  if (!READ.includes(u.file.type)) u.file = await asJpeg(u.file);
  send(u);
}

function send(u) {
  const request = new XMLHttpRequest();
  const form = new FormData();
  form.append('file', u.file, u.file.name || 'pasted.jpg');
  request.open('POST', '/images');
  for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
  request.upload.onprogress = (e) => {
    if (!e.lengthComputable) return;
    u.bar.value = 100 * e.loaded / e.total;
    u.state.textContent = e.loaded < e.total ? `sending, ${Math.round(u.bar.value)} %` : 'processing';
    if (e.loaded === e.total) u.bar.removeAttribute('value');
  };
  request.onerror = () => {
    showProblem(u.item, { title: 'The server cannot be reached', detail: 'The upload was not answered.' });
    finish(u, 'failed');
  };
  request.onload = () => answered(u, request);
  request.send(form);
}

async function answered(u, request) {
  if (request.status === 415) {
    const jpeg = await asJpeg(u.file);
    if (jpeg !== u.file) {
      u.file = jpeg;
      send(u);
      return;
    }
  }
  if (request.status >= 400) {
    const problem = problemOf(request.status, request.responseText);
    if (problem.errors.length === 0) showProblem(u.item, problem);
    for (const e of problem.errors) showProblem(u.item, { ...problem, title: e.title, detail: e.detail });
    finish(u, 'refused');
    return;
  }
  const answer = JSON.parse(request.responseText);
  for (const e of answer.errors || []) showProblem(u.item, e);
  try {
    for (const image of answer.images) {
      const stored = request.status === 202 ? await poll(u, image) : image;
      u.item.append(variants(stored));
    }
    const timing = request.getResponseHeader('Server-Timing');
    const total = performance.now() - u.begun;
    if (timing) u.item.append(times(timing, total));
    finish(u, `stored in ${Math.round(total)} ms`);
    gallery.restart();
  } catch (problem) {
    showProblem(u.item, problem);
    finish(u, 'failed');
  }
}

// A 202 means that the image is decoded. Its description says when it is stored.
async function poll(u, image) {
  for (let wait = 200; ; wait = Math.min(2000, wait * 1.5)) {
    const answer = await fetch(image.url, { headers: headers() });
    if (answer.status === 200) return answer.json();
    if (answer.status !== 202) throw problemOf(answer.status, await answer.text());
    u.state.textContent = 'processing';
    await new Promise((done) => { setTimeout(done, wait); });
  }
}

function copyButton(url, what) {
  const button = element('button', { type: 'button', class: 'quiet', 'aria-label': `Copy link to ${what}` }, 'Copy link');
  button.addEventListener('click', async () => {
    const link = new URL(url, location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      button.textContent = 'Copied';
      say('The link is copied.');
    } catch {
      prompt('Copy this link:', link);
    }
    setTimeout(() => { button.textContent = 'Copy link'; }, 2000);
  });
  return button;
}

function variants(image) {
  const list = element('ul', { class: 'variants', 'aria-label': 'Variants' });
  for (const [name, v] of Object.entries(image.variants || {})) {
    list.append(element('li', {},
      element('a', { href: v.url },
        element('picture', {}, ...(v.sources || []).map((s) => element('source', { type: s.type, srcset: s.srcset })),
          element('img', { src: v.url, alt: `${image.filename || 'image'}, ${name}`, loading: 'lazy', 'data-width': v.width, 'data-height': v.height }))),
      element('div', { class: 'meta' }, element('strong', {}, name),
        element('span', {}, [`${v.width} × ${v.height}, ${bytes(v.bytes)}`,
          ...(v.sources || []).map((s) => `${s.type.slice(6).toUpperCase().replace('WEBP', 'WebP')} ${bytes(s.bytes)}`)].join(', ')), copyButton(v.url, name))));
  }
  return list;
}

// ---- where the time went ----

function times(header, total) {
  const parts = header.split(',').map((part) => {
    const [name, duration] = part.trim().split(';dur=');
    return { name, ms: Number(duration) };
  }).filter((part) => part.ms >= 0.05);
  const sum = parts.reduce((all, part) => all + part.ms, 0) || 1;
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  const list = element('ul');
  let at = 0;
  svg.setAttribute('viewBox', '0 0 1000 10');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', 'Where the time went on the server');
  for (const part of parts) {
    const rect = document.createElementNS(ns, 'rect');
    const colour = COLOURS[part.name] || '#7a869a';
    const swatch = element('i', { 'aria-hidden': 'true' });
    swatch.style.background = colour;
    for (const [key, value] of [['x', at], ['width', 1000 * part.ms / sum], ['height', 10], ['fill', colour]]) rect.setAttribute(key, value);
    at += 1000 * part.ms / sum;
    svg.append(rect);
    list.append(element('li', {}, swatch, `${part.name} ${part.ms.toFixed(1)} ms`));
  }
  return element('div', { class: 'times' }, svg, list,
    element('p', {}, `${Math.round(total)} ms in all, with the way to the server and back.`));
}

// ---- the gallery ----

// One call can report that the button left the sight and that it came again: the last report counts.
const bottom = new IntersectionObserver((seen) => { if (seen.at(-1).isIntersecting) gallery.load(false); });

const gallery = {
  url: '', busy: false, again: false,

  restart() {
    this.again = this.busy; // what is being read may be older
    if (this.busy) return;
    this.url = `/images?limit=${PAGE}&order=newest`;
    this.load(true);
  },

  // While the button is in sight, the next part is loaded. Observing it again reports that, also
  // if it has never been out of sight.
  async load(fromStart) {
    if (this.busy || !this.url) return;
    this.busy = true;
    bottom.disconnect();
    const isRead = await this.read(fromStart);
    this.busy = false;
    $('more').hidden = !this.url;
    if (this.again) this.restart();
    else if (isRead) bottom.observe($('more'));
  },

  async read(fromStart) {
    try {
      const answer = await fetch(this.url, { headers: headers() });
      if (!answer.ok) {
        // Without the right to list there is no gallery.
        if (answer.status !== 401 && answer.status !== 403) this.fail(problemOf(answer.status, await answer.text()));
        this.url = '';
        return false;
      }
      const list = await answer.json();
      $('gallery-section').hidden = false;
      $('gallery-error').hidden = true;
      if (fromStart) $('gallery').replaceChildren();
      for (const image of list.images) $('gallery').append(this.item(image));
      this.url = list.next || '';
      return true;
    } catch {
      this.fail({ title: 'The list cannot be read', detail: 'The server cannot be reached.' });
      return false;
    }
  },

  fail(problem) {
    $('gallery-section').hidden = false;
    $('gallery-error').hidden = false;
    $('gallery-error').replaceChildren(element('strong', {}, problem.title), problem.detail);
  },

  item(image) {
    const small = Object.entries(image.variants || {}).sort((a, b) => a[1].width - b[1].width)
      .find(([, v]) => v.width >= 150) || Object.entries(image.variants || {})[0];
    const time = idTime(image.id);
    const name = image.filename || 'image';
    const item = element('li', {});
    if (small) {
      item.append(element('a', { href: small[1].url },
        element('img', { src: small[1].url, alt: `${name}, stored ${time}`, loading: 'lazy' })));
    }
    item.append(element('div', { class: 'meta' }, element('span', {}, time),
      element('button', { type: 'button', class: 'quiet', 'aria-label': `Delete ${name} of ${time}`, onclick: () => this.remove(image, item) }, 'Delete')));
    return item;
  },

  async remove(image, item) {
    if (!confirm('Delete this image and all its variants?')) return;
    try {
      const answer = await fetch(image.url || `/images/${image.id}`, { method: 'DELETE', headers: headers() });
      if (answer.ok || answer.status === 404) {
        const other = item.nextElementSibling || item.previousElementSibling;
        item.remove();
        say('The image is deleted.');
        (other ? other.querySelector('button') : $('files')).focus();
      } else {
        item.querySelectorAll('.error').forEach((e) => e.remove());
        showProblem(item, problemOf(answer.status, await answer.text()));
      }
    } catch {
      showProblem(item, { title: 'The server cannot be reached', detail: 'The image is not deleted.' });
    }
  },
};

// The first ten characters of an id are its time in milliseconds (ULID).
function idTime(id) {
  let ms = 0;
  for (const c of id.slice(0, 10)) ms = ms * 32 + '0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(c);
  return new Date(ms).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

// ---- begin ----

// In the order of the files, above those taken before: the first lines are the ones that move.
function take(files) {
  $('uploads').prepend(...Array.from(files, add));
  next();
}

$('drop').hidden = false;

const drop = $('drop');
$('files').addEventListener('change', (e) => { take(e.target.files); e.target.value = ''; });
for (const type of ['dragenter', 'dragover']) {
  document.addEventListener(type, (e) => { e.preventDefault(); drop.classList.add('over'); });
}
for (const type of ['dragleave', 'drop']) {
  document.addEventListener(type, (e) => { e.preventDefault(); drop.classList.remove('over'); });
}
document.addEventListener('drop', (e) => take(e.dataTransfer.files));
document.addEventListener('paste', (e) => take(e.clipboardData.files));
$('token').value = sessionStorage.getItem('token') || '';
$('token').addEventListener('change', () => {
  sessionStorage.setItem('token', $('token').value.trim());
  gallery.restart();
});
$('more').addEventListener('click', () => gallery.load(false));
gallery.restart();
