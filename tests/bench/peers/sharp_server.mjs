#!/usr/bin/env node
// The work of conf/drain.ini done with Node, sharp (libvips) and busboy: what a web team would
// write today. Only to measure against: make bench-peers.
//
//   POST /images                     multipart/form-data (every part with a JPEG is one image) or image/jpeg
//   GET  /images/{id}/{variant}.jpg  a stored variant
//   GET  /healthz                    200 once the worker listens
import cluster from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

const OPTIONS = {
  dir: { type: 'string', help: 'directory to store <id>/<variant>.jpg in (required)' },
  host: { type: 'string', default: '127.0.0.1', help: 'address to listen on' },
  port: { type: 'string', default: '8090', help: 'port to listen on' },
  workers: { type: 'string', default: String(os.availableParallelism()), help: 'processes; 0 = no cluster' },
  pool: { type: 'string', default: '', help: 'libuv threads per process (images at once); default: cores / processes, at least 1' },
  threads: { type: 'string', default: '1', help: 'libvips threads per image (sharp.concurrency)' },
  plan: { type: 'string', default: 'shared', help: 'shared: decode once to 800x800, three outputs from it; independent: decode three times' },
  icc: { type: 'string', default: 'keep', help: 'keep: carry the profile over; srgb: convert and strip (the default of sharp)' },
  blur: { type: 'string', default: 'default', help: 'default: blur(8) as documented; exact: a wider mask, within 1 grey level rms of a true Gaussian' },
  'max-bytes': { type: 'string', default: String(32 << 20), help: 'largest upload' },
  'max-pixels': { type: 'string', default: String(100e6), help: 'largest image' },
  help: { type: 'boolean', default: false, help: 'this text' },
};

function usage(stream) {
  stream.write('usage: sharp_server.mjs --dir DIR [options]\n');
  for (const [name, o] of Object.entries(OPTIONS))
    stream.write(`  --${name.padEnd(11)} ${o.help}${o.default ? ` [${o.default}]` : ''}\n`);
}

let opt;
try {
  opt = parseArgs({ options: OPTIONS }).values;
  for (const [name, allowed] of [['plan', ['shared', 'independent']], ['icc', ['keep', 'srgb']], ['blur', ['default', 'exact']]])
    if (!allowed.includes(opt[name])) throw new Error(`--${name} must be one of ${allowed.join(', ')}, not '${opt[name]}'`);
  if (!opt.dir && !opt.help) throw new Error('--dir is required');
} catch (e) {
  process.stderr.write(`sharp_server: ${e.message}\n`);
  usage(process.stderr);
  process.exit(2);
}
if (opt.help) { usage(process.stdout); process.exit(0); }

const workers = Number(opt.workers);
const pool = opt.pool || String(Math.max(1, Math.floor(os.availableParallelism() / Math.max(1, workers))));

if (cluster.isPrimary && workers > 0) {
  // The pool's size is read when a process starts, so it goes into the workers' environment.
  for (let i = 0; i < workers; i++) cluster.fork({ UV_THREADPOOL_SIZE: pool });
  let stopping = false;
  const stop = () => { stopping = true; for (const w of Object.values(cluster.workers)) w.process.kill('SIGTERM'); };
  process.on('SIGTERM', stop).on('SIGINT', stop);
  cluster.on('exit', () => { if (!stopping) cluster.fork({ UV_THREADPOOL_SIZE: pool }); });
} else {
  await serve();
}

async function serve() {
  const { default: sharp } = await import('sharp');
  const { default: busboy } = await import('busboy');
  sharp.cache(false);                       // every upload is new: the operation cache can only cost
  sharp.concurrency(Number(opt.threads));   // parallelism comes from images, not from inside an image
  sharp.simd(true);
  const root = path.resolve(opt.dir);
  const incoming = path.join(root, '.incoming');
  await mkdir(incoming, { recursive: true });

  const maxBytes = Number(opt['max-bytes']);
  const input = { limitInputPixels: Number(opt['max-pixels']), sequentialRead: true, failOn: 'warning' };
  const inside = (n) => ({ width: n, height: n, fit: 'inside', withoutEnlargement: true });
  const sigma = opt.blur === 'exact' ? { sigma: 8, precision: 'integer', minAmplitude: 0.05 } : 8;
  const VARIANTS = {
    medium: (s) => s.resize(inside(800)).jpeg({ quality: 82 }),
    thumb: (s) => s.resize(inside(160)).jpeg({ quality: 80 }),
    blurred: (s) => s.resize(inside(800)).blur(sigma).jpeg({ quality: 75 }),
  };

  class HttpError extends Error {
    constructor(status, title) { super(title); this.status = status; }
  }

  async function processImage(jpeg) {
    let meta;
    try {
      meta = await sharp(jpeg, input).metadata();
    } catch (e) {
      throw new HttpError(415, e.message);
    }
    if (meta.format !== 'jpeg') throw new HttpError(415, `not a JPEG but ${meta.format}`);
    let source = () => sharp(jpeg, input).autoOrient();
    const keep = opt.icc === 'keep' && meta.icc;
    try {
      if (opt.plan === 'shared' && !keep) {   // raw pixels cannot carry a profile to the second step
        let first = source().resize(inside(800));
        if (meta.channels === 1) first = first.toColourspace('b-w');
        const { data, info } = await first.raw().toBuffer({ resolveWithObject: true });
        source = () => sharp(data, { raw: { width: info.width, height: info.height, channels: info.channels } });
      }
      const made = await Promise.all(Object.values(VARIANTS).map((make) => {
        let s = source();
        if (keep) s = s.keepIccProfile();
        if (meta.channels === 1) s = s.toColourspace('b-w');
        return make(s).toBuffer({ resolveWithObject: true });
      }));
      const id = randomUUID();
      const dir = path.join(incoming, id);
      await mkdir(dir);
      const variants = {};
      await Promise.all(Object.keys(VARIANTS).map((name, i) => {
        const { data, info } = made[i];
        variants[name] = { url: `/images/${id}/${name}.jpg`, width: info.width, height: info.height, bytes: data.length };
        return writeFile(path.join(dir, `${name}.jpg`), data);
      }));
      await rename(dir, path.join(root, id));
      return { id, width: meta.autoOrient.width, height: meta.autoOrient.height, variants };
    } catch (e) {
      throw new HttpError(422, e.message);
    }
  }

  function readRaw(req) {
    return new Promise((resolve, reject) => {
      const chunks = [];
      let size = 0;
      req.on('data', (c) => {
        size += c.length;
        if (size > maxBytes) reject(new HttpError(413, `more than ${maxBytes} bytes`)); else chunks.push(c);
      });
      req.on('end', () => resolve([Buffer.concat(chunks, size)]));
      req.on('error', reject);
    });
  }

  function readForm(req) {
    return new Promise((resolve, reject) => {
      const files = [];
      let form;
      try {
        form = busboy({ headers: req.headers, limits: { fileSize: maxBytes, files: 64, fields: 64 }, highWaterMark: 1 << 20, fileHwm: 1 << 20 });
      } catch (e) {
        reject(new HttpError(400, e.message));
        return;
      }
      form.on('file', (_name, stream) => {
        const chunks = [];
        stream.on('data', (c) => chunks.push(c));
        stream.on('limit', () => reject(new HttpError(413, `more than ${maxBytes} bytes`)));
        stream.on('end', () => files.push(Buffer.concat(chunks)));
      });
      form.on('close', () => resolve(files));
      form.on('error', (e) => reject(new HttpError(400, e.message)));
      req.pipe(form);
    });
  }

  function json(res, status, body, headers = {}) {
    const text = JSON.stringify(body);
    res.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json', 'content-length': Buffer.byteLength(text), ...headers });
    res.end(text);
  }

  async function postImages(req, res) {
    const type = req.headers['content-type'] ?? '';
    const files = await (type.startsWith('multipart/') ? readForm(req) : readRaw(req));
    if (files.length === 0) throw new HttpError(400, 'no file in the form');
    const images = await Promise.all(files.map(processImage));
    json(res, 201, { images }, images.length === 1 ? { location: `/images/${images[0].id}` } : {});
  }

  async function getVariant(res, id, name) {
    const file = path.join(root, id, name);
    const st = await stat(file).catch(() => { throw new HttpError(404, 'no such variant'); });
    res.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': st.size });
    createReadStream(file).pipe(res);
  }

  const server = http.createServer((req, res) => {
    const variant = /^\/images\/([0-9a-f-]{36})\/(\w+\.jpg)$/.exec(req.url);
    const work = req.method === 'POST' && req.url === '/images' ? postImages(req, res)
      : req.method === 'GET' && variant ? getVariant(res, variant[1], variant[2])
      : req.method === 'GET' && req.url === '/healthz' ? Promise.resolve(json(res, 200, { status: 'ok' }))
      : Promise.reject(new HttpError(404, 'no such resource'));
    work.catch((e) => {
      req.unpipe();
      req.resume();
      if (!res.headersSent) json(res, e.status ?? 500, { title: e.message, status: e.status ?? 500 });
      else res.destroy();
    });
  });
  server.keepAliveTimeout = 65_000;
  const stop = () => { server.close(() => process.exit(0)); server.closeIdleConnections(); };
  process.on('SIGTERM', stop).on('SIGINT', stop);
  server.listen({ port: Number(opt.port), host: opt.host });
  process.on('exit', () => { rm(incoming, { recursive: true, force: true }).catch(() => {}); });
}
