// Filters for approximate set membership: petal's library, compiled to WebAssembly. petal.d.ts describes every function.

export class PetalError extends Error {
  constructor(message, kind, offset = 0) {
    super(message);
    this.name = "PetalError";
    this.kind = kind;
    this.offset = offset;
  }
}

// A variable, so that a bundler for browsers does not look for it.
const nodeFiles = "node:fs";
const node = globalThis.process?.versions?.node
  ? await import(/* webpackIgnore: true */ /* @vite-ignore */ nodeFiles)
  : undefined;

// A function that returns a vector of zeros.
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
];
const module = WebAssembly.validate(Uint8Array.from(SIMD))
  ? new URL("./petal.wasm", import.meta.url)
  : new URL("./petal-basic.wasm", import.meta.url);
let memory = new Uint8Array();

/** Copies the next bytes of the file that is opened to a part of the memory; returns their number. */
let readFile = () => 0;
/** What stopped the last read. No exception may pass through the module, which would stay in the middle of the call. */
let readError;

function read(at, length) {
  try {
    return readFile(view().subarray(at >>> 0, (at >>> 0) + (length >>> 0)));
  } catch (error) {
    readError = error;
    return -1;
  }
}

const file = module.protocol === "file:" && node ? node.readFileSync(module) : await download(module, {});
const code = await WebAssembly.compile(file);
/** The functions of the module that runs. */
let wasm;
/** Fulfilled when it runs, again after a trap. */
let ready = start();
await ready;

/** Waits until the module runs. If the last one did not start, for want of memory, another one is tried. */
async function running() {
  const last = ready;
  await last.catch(() => {
    if (ready === last) ready = start();
  });
  return ready;
}

async function start() {
  const { exports } = await WebAssembly.instantiate(code, { petal: { read } });
  memory = new Uint8Array();
  wasm = guarded(exports);
}

/** Returns the functions of a module. A trap, within a call, ends it: all of them throw, and another module starts. */
function guarded(exports) {
  const module = { memory: exports.memory };
  for (const [name, run] of Object.entries(exports)) {
    if (typeof run !== "function") continue;
    module[name] = (first, second, third) => {
      if (module.trap) throw lost(module);
      try {
        return run(first, second, third);
      } catch (trap) {
        module.trap = trap;
        ready = start();
        // `open` reports it.
        ready.catch(() => {});
        throw lost(module);
      }
    };
  }
  return module;
}

function lost({ trap }) {
  const text = `petal.wasm: ${trap.message}, and all filters in its memory are lost; open them again`;
  return Object.assign(new PetalError(text, "trap"), { cause: trap });
}

/** Sends a request, and gives the response to a function; what fails is an error of the kind `io`. */
async function request(url, { headers, timeout = 30_000 }, use) {
  if (url.username || url.password) throw new TypeError("an address with a password: use the option headers");
  if (!(timeout > 0 && timeout < 2 ** 31)) throw new TypeError(`timeout: expected milliseconds, found ${timeout}`);
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), timeout);
  try {
    return await use(await fetch(url, { headers, signal: stop.signal }));
  } catch (error) {
    if (error instanceof PetalError) throw error;
    const text = stop.signal.aborted ? `no answer within ${timeout} ms` : (error.cause ?? error).message;
    throw new PetalError(`${url}: ${text}`, "io");
  } finally {
    clearTimeout(timer);
    // A body that nothing reads is not sent to its end.
    stop.abort();
  }
}

function download(url, options) {
  return request(url, options, (response) => {
    if (!response.ok) throw new PetalError(`${url}: HTTP status ${response.status}`, "io");
    return response.arrayBuffer();
  });
}

// ---- Memory of the module -----------------------------------------------------------------------

/** Returns the memory, which is another array after it has grown. */
function view() {
  if (memory.length === 0) memory = new Uint8Array(wasm.memory.buffer);
  return memory;
}

/** Returns the address of a buffer of this length; `memory` is valid then. */
function reserve(length) {
  const at = length < 2 ** 31 ? wasm.petal_request(length) >>> 0 : 0;
  if (at === 0) throw new PetalError(`no memory for ${length} bytes`, "memory");
  view();
  return at;
}

/** A buffer that is longer is freed after the call. */
const LARGE = 1 << 20;

function send(bytes) {
  const at = reserve(bytes.length);
  memory.set(bytes, at);
}

function answer() {
  const at = wasm.petal_answer() >>> 0;
  return view().subarray(at, at + wasm.petal_answer_length());
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function fail(found) {
  throw new PetalError(found.error, found.kind, found.offset);
}

/** Returns what a function returns, or throws the error that it left. */
function checked(result) {
  if (result === -1) fail(JSON.parse(decoder.decode(answer())));
  return result;
}

/** Calls the operation `op`; fields that are null are left out of the answer. */
function call(op, fields) {
  const text = encoder.encode(JSON.stringify({ op, ...fields }));
  send(text);
  wasm.petal_call();
  const found = JSON.parse(decoder.decode(answer()), (_, value) => value ?? undefined);
  return "error" in found ? fail(found) : found;
}

function push(filter, bytes) {
  send(bytes);
  checked(wasm.petal_push(filter));
}

// ---- Keys ---------------------------------------------------------------------------------------

/** Numbers are eight bytes, the lowest first. */
const number = new DataView(new ArrayBuffer(8));
const numberBytes = new Uint8Array(number.buffer);

/** Returns the bytes of a key that is no string; those of a number are valid until the next one. */
function bytesOf(key) {
  if (key instanceof Uint8Array) return key;
  if (Number.isSafeInteger(key) && key >= 0) {
    number.setUint32(0, key, true);
    number.setUint32(4, key / 0x1_0000_0000, true);
    return numberBytes;
  }
  if (typeof key === "bigint" && BigInt.asUintN(64, key) === key) {
    number.setBigUint64(0, key, true);
    return numberBytes;
  }
  if (typeof key === "bigint" || Number.isInteger(key)) {
    throw new RangeError(`${key}: a number is from 0 to 2^53 - 1, a bigint to 2^64 - 1; other keys are strings`);
  }
  const found = typeof key === "number" ? `the number ${key}` : key === null ? "null" : typeof key;
  throw new TypeError(`a key is a string, a Uint8Array, an integer or a bigint, not ${found}`);
}

/** Writes a string in UTF-8 to `at`, where three bytes for each of its units are free; returns its length. */
function writeText(text, at) {
  const bytes = memory;
  let unit = 0;
  // Short texts of ASCII, without a call.
  for (const end = Math.min(text.length, 96); unit < end; unit++) {
    const code = text.charCodeAt(unit);
    if (code > 127) break;
    bytes[at + unit] = code;
  }
  if (unit === text.length) return unit;
  if (/\p{Surrogate}/u.test(text)) throw new TypeError("a key has half of a surrogate pair, which has no UTF-8");
  return encoder.encodeInto(text, bytes.subarray(at)).written;
}

/** Writes a key to the buffer; returns its length. */
function write(key) {
  if (typeof key === "string") return writeText(key, reserve(3 * key.length));
  const bytes = bytesOf(key);
  send(bytes);
  return bytes.length;
}

/** Keys of a call. */
const BATCH = 1024;

/** Writes keys to the buffer: their lengths, then their bytes. */
function writeBatch(keys) {
  const room = keys.reduce((sum, key) => sum + roomOf(key), 0);
  const at = reserve(room);
  const lengths = new Uint32Array(memory.buffer, at, keys.length);
  let end = at + 4 * keys.length;
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    if (typeof key === "string") {
      lengths[index] = writeText(key, end);
    } else {
      const bytes = bytesOf(key);
      memory.set(bytes, end);
      lengths[index] = bytes.length;
    }
    end += lengths[index];
  }
  return keys.length;
}

/** Returns how many bytes a key and its length take at most. */
function roomOf(key) {
  return 4 + (typeof key === "string" ? 3 * key.length : bytesOf(key).length);
}

function* batches(keys) {
  let batch = [];
  let room = 0;
  for (let key of keys) {
    // An iterator may give the same array again, with other bytes.
    if (key instanceof Uint8Array && !Array.isArray(keys)) key = new Uint8Array(key);
    batch.push(key);
    room += roomOf(key);
    if (batch.length === BATCH || room >= LARGE) {
      yield batch;
      batch = [];
      room = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

// ---- Filters in memory --------------------------------------------------------------------------

const closed = new FinalizationRegistry((filter) => close(filter));

/** Frees a filter, unless its module has ended. */
function close({ at, module }) {
  if (module === wasm && !module.trap) call("close", { filter: at });
}

/** Returns the result of a call with one key. */
function oneResult(length, result) {
  const found = checked(result) === 1;
  if (length > LARGE) wasm.petal_done();
  return found;
}

class Handle {
  #filter;

  constructor(at) {
    this.#filter = { at, module: wasm };
    closed.register(this, this.#filter, this);
  }

  /** The number of the filter in the module; none after it is closed. */
  get at() {
    if (this.#filter === undefined) throw new PetalError("the filter is closed", "invalid");
    if (this.#filter.module !== wasm) throw lost(this.#filter.module);
    return this.#filter.at;
  }

  close() {
    if (this.#filter === undefined) return;
    closed.unregister(this);
    close(this.#filter);
    this.#filter = undefined;
  }
}

export class Filter {
  #handle;

  /** @internal */
  constructor(handle) {
    if (!(handle instanceof Handle)) throw new TypeError("open a file, or use BloomFilter.withFpr");
    this.#handle = handle;
  }

  has(key) {
    const length = write(key);
    return oneResult(length, wasm.petal_has(this.#handle.at, length));
  }

  add(key) {
    const length = write(key);
    return oneResult(length, wasm.petal_add(this.#handle.at, length));
  }

  hasMany(keys) {
    return this.#batch(keys, false);
  }

  addMany(keys) {
    return this.#batch(keys, true);
  }

  #batch(keys, insert) {
    const results = [];
    try {
      for (const batch of batches(keys)) {
        const count = writeBatch(batch);
        checked(wasm.petal_batch(this.#handle.at, count, insert));
        const found = answer();
        for (let index = 0; index < count; index++) results.push(found[index] === 1);
      }
    } finally {
      wasm.petal_done();
    }
    return results;
  }

  toBytes() {
    checked(wasm.petal_file(this.#handle.at));
    const bytes = answer().slice();
    wasm.petal_done();
    return bytes;
  }

  info() {
    return call("info", { filter: this.#handle.at });
  }

  close() {
    this.#handle.close();
  }
}

export class BloomFilter extends Filter {
  static withFpr(capacity, fpr, options = {}) {
    if (!Number.isSafeInteger(capacity) || capacity < 0) throw new TypeError(`the capacity is a number of keys, not ${capacity}`);
    const fields = { capacity, fpr: Number(fpr), secret: digits(options.secret) };
    return new BloomFilter(new Handle(call("build", fields).filter));
  }
}

/** Returns a secret as hexadecimal digits. */
function digits(secret) {
  if (secret === undefined) return undefined;
  if (!(secret instanceof Uint8Array) || secret.length !== 16) throw new TypeError("a secret is a Uint8Array of 16 bytes");
  return Array.from(secret, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function open(source, options = {}) {
  await running();
  const secret = digits(options.secret);
  const url = source instanceof URL ? source : typeof source === "string" ? addressOf(source) : undefined;
  if (node && (url?.protocol === "file:" || (typeof source === "string" && !url))) {
    const file = node.openSync(url ?? source);
    try {
      return filterOf((bytes) => node.readSync(file, bytes, 0, bytes.length), secret);
    } finally {
      node.closeSync(file);
    }
  }
  let bytes = source;
  if (url) bytes = await download(url, options);
  else if (source instanceof Blob) bytes = await source.arrayBuffer();
  if (bytes instanceof ArrayBuffer) bytes = new Uint8Array(bytes);
  if (!(bytes instanceof Uint8Array)) throw new TypeError("open takes a path, a URL, a Blob, an ArrayBuffer or a Uint8Array");
  let at = 0;
  return filterOf((piece) => {
    const next = bytes.subarray(at, at + piece.length);
    piece.set(next);
    at += next.length;
    return next.length;
  }, secret);
}

/** Opens the file whose bytes a function gives. */
function filterOf(next, secret) {
  readFile = next;
  readError = undefined;
  try {
    return new Filter(new Handle(call("open", { secret }).filter));
  } catch (error) {
    throw readError ?? error;
  } finally {
    readFile = () => 0;
  }
}

/** Returns the address that a string is; none if it is a path. */
function addressOf(text) {
  if (node && !/^(https?|file):/i.test(text)) return undefined;
  return new URL(text, globalThis.location?.href);
}

async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// ---- Filters at an address ----------------------------------------------------------------------

/** Bytes of the first request, which are kept. */
const BEGIN = 16384;
/** Requests at the same time. */
const PARALLEL = 8;

/** The ranges of one version of a file on a server. */
class HttpRanges {
  constructor(url, options) {
    this.url = url;
    this.options = options;
  }

  async open() {
    this.begin = await this.fetch(0, BEGIN);
  }

  async read(start, end) {
    return end <= this.begin.length ? this.begin.subarray(start, end) : this.fetch(start, end);
  }

  /** Fetches a range; the file may end within the first. */
  fetch(start, end) {
    const headers = new Headers(this.options.headers);
    headers.set("Range", `bytes=${start}-${end - 1}`);
    return request(this.url, { ...this.options, headers }, (response) => this.bytesOf(response, start, end));
  }

  async bytesOf(response, start, end) {
    const problem = (text, kind = "io") => new PetalError(`${this.url}: ${text}`, kind);
    if (response.status === 200) throw problem("the server ignores ranges: open() downloads the whole file");
    if (response.status !== 206) throw problem(`HTTP status ${response.status}`);
    if (/\S/.test(response.headers.get("Content-Encoding")?.replace("identity", "") ?? ""))
      throw problem("the server compresses ranges: switch that off for this file");
    const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
    if (!range)
      throw problem("no Content-Range: a server elsewhere must send Access-Control-Expose-Headers: Content-Range, ETag");
    const [, first, last, length] = range.map(Number);
    const version = response.headers.get("ETag") ?? response.headers.get("Last-Modified");
    if (version === null) throw problem("neither ETag nor Last-Modified: a changed file would not be noticed");
    this.length ??= length;
    this.version ??= version;
    if (length !== this.length || version !== this.version)
      throw problem("the file was replaced: open it again", "changed");
    end = Math.min(end, length);
    if (first !== start || last !== end - 1) throw problem(`expected bytes ${start}-${end - 1}, found ${first}-${last}`);
    const bytes = new Uint8Array(end - start);
    let at = 0;
    for await (const chunk of chunks(response.body)) {
      if (at + chunk.length > bytes.length) throw problem(`more than ${bytes.length} bytes for a range`);
      bytes.set(chunk, at);
      at += chunk.length;
    }
    if (at < bytes.length) throw problem(`${at} bytes for a range of ${bytes.length}`);
    return bytes;
  }
}

class BlobRanges {
  constructor(blob) {
    this.blob = blob;
    this.length = blob.size;
  }

  async read(start, end) {
    return new Uint8Array(await this.blob.slice(start, end).arrayBuffer());
  }
}

/** Reads ranges until there is a result. */
async function resolve(handle, source) {
  for (;;) {
    const found = call("next", { filter: handle.at });
    if (!found.ranges) return found;
    const pieces = Array(found.ranges.length);
    let next = 0;
    const worker = async () => {
      while (next < pieces.length) {
        const index = next++;
        try {
          pieces[index] = await source.read(...found.ranges[index]);
        } catch (error) {
          // The others ask for no more.
          next = pieces.length;
          throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(PARALLEL, pieces.length) }, worker));
    const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let end = 0;
    for (const piece of pieces) {
      bytes.set(piece, end);
      end += piece.length;
    }
    push(handle.at, bytes);
  }
}

export class RemoteFilter {
  #handle;
  #source;

  /** @internal */
  constructor(handle, source) {
    if (!(handle instanceof Handle)) throw new TypeError("use openRemote");
    this.#handle = handle;
    this.#source = source;
  }

  async has(key) {
    return (await this.hasMany([key]))[0];
  }

  async hasMany(keys) {
    const results = [];
    for (const batch of batches(keys)) {
      const count = writeBatch(batch);
      const query = new Handle(checked(wasm.petal_ask(this.#handle.at, count)));
      try {
        results.push(...(await resolve(query, this.#source)).found);
      } finally {
        query.close();
      }
    }
    return results;
  }

  info() {
    return call("info", { filter: this.#handle.at });
  }

  close() {
    this.#handle.close();
  }
}

export async function openRemote(source, options = {}) {
  await running();
  const secret = digits(options.secret);
  let ranges;
  if (source instanceof Blob) {
    ranges = new BlobRanges(source);
  } else {
    const url = source instanceof URL ? source : new URL(source, globalThis.location?.href);
    if (!/^https?:$/.test(url.protocol)) throw new TypeError(`openRemote takes http: and https:, not ${url.protocol}`);
    ranges = new HttpRanges(url, options);
    await ranges.open();
  }
  const handle = new Handle(call("remote", { length: ranges.length, secret }).filter);
  try {
    await resolve(handle, ranges);
  } catch (error) {
    handle.close();
    throw error;
  }
  return new RemoteFilter(handle, ranges);
}
