#!/usr/bin/env node
// The work of conf/drain.ini with Node, sharp (libvips) and busboy, as a web team would write it.
// Used by make bench-peers only.
//
//   POST /images                     multipart/form-data (each JPEG part is an image) or image/jpeg
//   GET  /images/{id}/{variant}.jpg  a stored variant
//   GET  /healthz                    200 once the worker listens
//
// Each core has a process with one libuv thread. Images run in parallel, not parts of an image.
import cluster from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

const MAX_BYTES = 32 << 20;
const INPUT = { limitInputPixels: 100e6, sequentialRead: true, failOn: 'warning' };
const USAGE = `usage: sharp_server.mjs --dir DIR [--port 8090] [--blur default|exact]

  --dir   directory for <id>/<variant>.jpg
  --blur  default: blur(8) as documented; exact: a wider mask, within 1 grey level rms of a Gaussian
`;

class HttpError extends Error {
  constructor(status, title) {
    super(title);
    this.status = status;
  }
}

function parse() {
  try {
    const { values } = parseArgs({
      options: {
        dir: { type: 'string' },
        port: { type: 'string', default: '8090' },
        blur: { type: 'string', default: 'default' },
      },
    });
    if (!values.dir) throw new Error('--dir is required');
    if (!['default', 'exact'].includes(values.blur))
      throw new Error(`--blur: expected default or exact, not '${values.blur}'`);
    return values;
  } catch (e) {
    process.stderr.write(`sharp_server: ${e.message}\n${USAGE}`);
    return process.exit(2);
  }
}

// ---- images ----

const inside = (n) => ({ width: n, height: n, fit: 'inside', withoutEnlargement: true });

function makeVariants(blur) {
  const sigma = blur === 'exact' ? { sigma: 8, precision: 'integer', minAmplitude: 0.05 } : 8;
  return {
    medium: (s) => s.resize(inside(800)).jpeg({ quality: 82 }),
    thumb: (s) => s.resize(inside(160)).jpeg({ quality: 80 }),
    blurred: (s) => s.resize(inside(800)).blur(sigma).jpeg({ quality: 75 }),
  };
}

async function readMetadata(sharp, jpeg) {
  try {
    const meta = await sharp(jpeg, INPUT).metadata();
    if (meta.format === 'jpeg') return meta;
    throw new Error(`not a JPEG but ${meta.format}`);
  } catch (e) {
    throw new HttpError(415, e.message);
  }
}

// Returns a function that makes the input of a variant. The image is decoded once to 800 x 800,
// unless it has a profile: raw pixels cannot carry one.
async function makeSource(sharp, jpeg, meta) {
  const source = () => sharp(jpeg, INPUT).autoOrient();
  if (meta.icc) return () => source().keepIccProfile();
  let first = source().resize(inside(800));
  if (meta.channels === 1) first = first.toColourspace('b-w');
  const { data, info } = await first.raw().toBuffer({ resolveWithObject: true });
  const raw = { width: info.width, height: info.height, channels: info.channels };
  return () => sharp(data, { raw });
}

async function makeFiles(sharp, variants, jpeg, meta) {
  const source = await makeSource(sharp, jpeg, meta);
  const make = (variant) => {
    const s = meta.channels === 1 ? source().toColourspace('b-w') : source();
    return variant(s).toBuffer({ resolveWithObject: true });
  };
  return Promise.all(Object.values(variants).map(make));
}

async function store(root, variants, made) {
  const id = randomUUID();
  const dir = path.join(root, '.incoming', id);
  const out = {};
  await mkdir(dir);
  await Promise.all(Object.keys(variants).map((name, i) => {
    const { data, info } = made[i];
    const url = `/images/${id}/${name}.jpg`;
    out[name] = { url, width: info.width, height: info.height, bytes: data.length };
    return writeFile(path.join(dir, `${name}.jpg`), data);
  }));
  await rename(dir, path.join(root, id));
  return { id, variants: out };
}

async function processImage(server, jpeg) {
  const meta = await readMetadata(server.sharp, jpeg);
  try {
    const made = await makeFiles(server.sharp, server.variants, jpeg, meta);
    const { id, variants } = await store(server.root, server.variants, made);
    return { id, width: meta.autoOrient.width, height: meta.autoOrient.height, variants };
  } catch (e) {
    throw new HttpError(422, e.message);
  }
}

// ---- requests ----

function readRaw(req) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    let size = 0;
    req.on('data', (c) => {
      size += c.length;
      if (size > MAX_BYTES) reject(new HttpError(413, `more than ${MAX_BYTES} bytes`));
      else chunks.push(c);
    });
    req.on('end', () => resolve([Buffer.concat(chunks, size)]));
    req.on('error', reject);
  });
}

function openForm(busboy, req) {
  const limits = { fileSize: MAX_BYTES, files: 64, fields: 64 };
  try {
    return busboy({ headers: req.headers, limits, highWaterMark: 1 << 20, fileHwm: 1 << 20 });
  } catch (e) {
    throw new HttpError(400, e.message);
  }
}

function readForm(busboy, req) {
  return new Promise((resolve, reject) => {
    const files = [];
    const form = openForm(busboy, req);
    form.on('file', (_name, stream) => {
      const chunks = [];
      stream.on('data', (c) => chunks.push(c));
      stream.on('limit', () => reject(new HttpError(413, `more than ${MAX_BYTES} bytes`)));
      stream.on('end', () => files.push(Buffer.concat(chunks)));
    });
    form.on('close', () => resolve(files));
    form.on('error', (e) => reject(new HttpError(400, e.message)));
    req.pipe(form);
  });
}

function respond(res, status, body, headers = {}) {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'content-type': status < 400 ? 'application/json' : 'application/problem+json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  res.end(text);
}

async function postImages(server, req, res) {
  const type = req.headers['content-type'] ?? '';
  const isForm = type.startsWith('multipart/');
  const files = await (isForm ? readForm(server.busboy, req) : readRaw(req));
  if (files.length === 0) throw new HttpError(400, 'no file in the form');
  const images = await Promise.all(files.map((jpeg) => processImage(server, jpeg)));
  const headers = images.length === 1 ? { location: `/images/${images[0].id}` } : {};
  respond(res, 201, { images }, headers);
}

async function getVariant(server, res, id, name) {
  const file = path.join(server.root, id, name);
  const found = await stat(file).catch(() => { throw new HttpError(404, 'no such variant'); });
  res.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': found.size });
  createReadStream(file).pipe(res);
}

async function handle(server, req, res) {
  const variant = /^\/images\/([0-9a-f-]{36})\/(\w+\.jpg)$/.exec(req.url);
  if (req.method === 'POST' && req.url === '/images') return postImages(server, req, res);
  if (req.method === 'GET' && variant) return getVariant(server, res, variant[1], variant[2]);
  if (req.method === 'GET' && req.url === '/healthz') return respond(res, 200, { status: 'ok' });
  throw new HttpError(404, 'no such resource');
}

function fail(req, res, e) {
  const status = e.status ?? 500;
  req.unpipe();
  req.resume();
  if (res.headersSent) res.destroy();
  else respond(res, status, { title: e.message, status });
}

// ---- processes ----

async function serve(options) {
  const { default: sharp } = await import('sharp');
  const { default: busboy } = await import('busboy');
  sharp.cache(false); // every upload is new, so a cache would only cost
  sharp.concurrency(1);
  sharp.simd(true);
  const root = path.resolve(options.dir);
  const incoming = path.join(root, '.incoming');
  await mkdir(incoming, { recursive: true });
  const server = { sharp, busboy, root, variants: makeVariants(options.blur) };
  const listener = http.createServer((req, res) => {
    handle(server, req, res).catch((e) => fail(req, res, e));
  });
  listener.keepAliveTimeout = 65_000;
  const stop = () => {
    listener.close(() => process.exit(0));
    listener.closeIdleConnections();
  };
  process.on('SIGTERM', stop).on('SIGINT', stop);
  listener.listen({ port: Number(options.port), host: '127.0.0.1' });
  process.on('exit', () => { rm(incoming, { recursive: true, force: true }).catch(() => {}); });
}

// libuv reads the size of its thread pool at the start of a process, from the environment.
function forkWorkers() {
  const fork = () => cluster.fork({ UV_THREADPOOL_SIZE: '1' });
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    for (const w of Object.values(cluster.workers)) w.process.kill('SIGTERM');
  };
  for (let i = 0; i < os.availableParallelism(); i++) fork();
  process.on('SIGTERM', stop).on('SIGINT', stop);
  cluster.on('exit', () => { if (!isStopping) fork(); });
}

const options = parse();
if (cluster.isPrimary) forkWorkers();
else await serve(options);
