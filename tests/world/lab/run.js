/* run.js - runs tests/bench/synthetic.c, as WebAssembly, in virtual time. The page and the tests do it with this. */
"use strict";

/* Returns the arguments of an open loop of 3,000 events. seda's pools have threads in proportion to their work. */
function wordsOf(policy, cores, load, seed) {
	const threads = policy === "seda" ? Math.max(2, Math.ceil(0.4 * cores)) : cores, rate = Math.round(load * cores * 1000);

	return [policy, 5, 0, threads, Math.max(1, Math.floor(0.15 * cores)), 4000, 400, 150, Math.max(0.02, 3000 / rate),
	        `random=${seed}`, "clocked=1", `rate=${rate}`, "trace=/trace"].map(String);
}

/* Returns { status, text, errors, trace }: what the program printed, and its trace. module: build/lab/lab.wasm, compiled.
 * world: the variable WORLD. */
async function run(module, words, world) {
	const files = { 1: [], 2: [], 3: [] }; // what was written: output, messages, the trace
	let ex, next = 0, outside = 0; // coroutines: the next one, and that of lab_run()
	const get = (at) => new DataView(ex.memory.buffer).getUint32(at, true);
	const set = (at, value) => new DataView(ex.memory.buffer).setUint32(at, value, true);
	const whole = (fd) => {
		const out = new Uint8Array(files[fd].reduce((sum, part) => sum + part.length, 0));

		files[fd].reduce((at, part) => { out.set(part, at); return at + part.length; }, 0);
		return out;
	};
	const text = (fd) => new TextDecoder().decode(whole(fd));
	const put = (line) => {
		const data = new TextEncoder().encode(line + "\0"), at = ex.lab_alloc(data.length);

		new Uint8Array(ex.memory.buffer).set(data, at);
		return at;
	};

	// ---- the system: as much of WASI as is called ----

	const imports = { lab: {}, env: {}, wasi_snapshot_preview1: {
		proc_exit(status) { throw new Error(`the program ended with status ${status}: ${text(2)}`); },
		environ_sizes_get(count, size) { set(count, 0); set(size, 0); return 0; },
		environ_get() { return 0; },
		fd_fdstat_get(fd, out) {
			new Uint8Array(ex.memory.buffer).fill(0, out, out + 24).fill(4, out, out + 1); // a file
			return 0;
		},
		fd_write(fd, parts, count, out) {
			let written = 0;

			for (let i = 0; i < count; i++) {
				const at = get(parts + 8 * i), size = get(parts + 8 * i + 4);

				files[fd].push(new Uint8Array(ex.memory.buffer, at, size).slice());
				written += size;
			}
			set(out, written);
			return 0;
		},
		fd_prestat_get() { return 8; }, // no such folder
		fd_seek() { return 70; }, // it is a pipe
		fd_close() { return 0; },
	} };

	// ---- coroutines: struct frames in browser.c ----

	imports.lab.switch = (from, to) => {
		if (ex.asyncify_get_state() === 2) { // it has come back
			ex.asyncify_stop_rewind();
			return;
		}
		outside ||= from;
		next = to;
		set(from + 8, ex.__stack_pointer.value);
		ex.asyncify_start_unwind(from);
	};
	for (const { module: from, name } of WebAssembly.Module.imports(module))
		imports[from][name] ??= () => { throw new Error(`${from}.${name} is not there`); };
	ex = (await WebAssembly.instantiate(module, imports)).exports;
	ex._initialize();

	const begin = [put(world), put(["synthetic", ...words].join(" "))];
	let status = ex.lab_run(...begin);
	while (ex.asyncify_get_state() === 1) {
		ex.asyncify_stop_unwind();
		ex.__stack_pointer.value = get(next + 8);
		if (get(next + 12))
			set(next + 12, 0);
		else
			ex.asyncify_start_rewind(next);
		if (next === outside)
			status = ex.lab_run(...begin);
		else
			ex.lab_coroutine();
	}
	return { status, text: text(1), errors: text(2), trace: whole(3) };
}
