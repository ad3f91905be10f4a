// The package in target/js on the files of testdata/conformance, and on servers that do not what they should.
// `cargo x js` builds it and runs the tests.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";

import { BloomFilter, Filter, PetalError, RemoteFilter, open, openRemote } from "../../target/js/petal.js";

const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../..");
const set = path.join(root, "testdata/conformance");
const READ = new Set(["bloom", "classic", "static", "static-fuse", "cascade"]);

const bytesOf = (name) => fs.readFileSync(path.join(set, name));
const lines = (name) => bytesOf(name).toString().trim().split("\n").map((line) => JSON.parse(line));
const secretOf = ({ secret }) => (secret ? Uint8Array.from(Buffer.from(secret, "hex")) : undefined);
const keyOf = ({ text, number, bytes }) =>
  text !== undefined ? text : number !== undefined ? BigInt(number) : Uint8Array.from(Buffer.from(bytes, "hex"));
const failsWith = (kind) => (error) => error instanceof PetalError && error.kind === kind && error.message.length > 10;
const isRefusal = (error) => error instanceof PetalError && error.kind !== "trap";

test("files give their answers, or are refused by name", async () => {
  let asked = 0;
  for (const file of lines("files.jsonl")) {
    const secret = secretOf(file);
    if (!READ.has(file.type)) {
      await assert.rejects(open(bytesOf(file.file), { secret }), (error) => {
        return failsWith("unsupported")(error) && error.message.includes(file.type);
      });
      continue;
    }
    const answers = lines(file.file.replace(".petal", ".jsonl"));
    const keys = answers.map(keyOf);
    const expected = answers.map(({ present }) => present);
    const filters = [
      await open(path.join(set, file.file), { secret }),
      await open(bytesOf(file.file), { secret }),
      await open(new Blob([bytesOf(file.file)]), { secret }),
    ];
    for (const filter of filters) {
      assert.deepEqual(keys.map((key) => filter.has(key)), expected, file.file);
      assert.deepEqual(filter.hasMany(keys), expected, file.file);
      assert.equal(filter.info().type, file.type);
      filter.close();
      filter.close();
      assert.throws(() => filter.has("one"), failsWith("invalid"));
    }
    asked += keys.length;
    if (file.type === "static-fuse") continue;
    const remote = await openRemote(new Blob([bytesOf(file.file)]), { secret });
    assert.deepEqual(await remote.hasMany(keys), expected, file.file);
    remote.close();
  }
  assert.ok(asked > 2000, `${asked} keys`);
});

test("hostile files are errors of their kind", async () => {
  let refused = 0;
  const read = new Map(lines("files.jsonl").map((file) => [file.file, file]));
  for (const { file, edits, length, error } of lines("hostile.jsonl")) {
    const { type, ...rest } = read.get(file);
    const original = bytesOf(file);
    const bytes = new Uint8Array(length);
    const edited = Buffer.from(original);
    for (const [offset, digits] of edits) Buffer.from(digits, "hex").copy(edited, offset);
    bytes.set(edited.subarray(0, length));
    const expected = READ.has(type) ? failsWith(error) : (found) => ["unsupported", error].some((kind) => failsWith(kind)(found));
    await assert.rejects(open(bytes, { secret: secretOf(rest) }), expected, JSON.stringify({ file, edits, length, error }));
    refused += 1;
    // Some damage is in parts that are not read; nothing may trap or wait without end.
    try {
      const remote = await openRemote(new Blob([bytes]), { secret: secretOf(rest) });
      await remote.hasMany(["one", "two", 3]);
      remote.close();
    } catch (found) {
      assert.ok(isRefusal(found), found.stack);
    }
  }
  assert.ok(refused > 1000, `${refused} files`);
});

/** The seconds for random damage, beside 40 rounds of each file: PETAL_FUZZ_SECONDS, or 0. */
const FUZZ_SECONDS = Number(process.env.PETAL_FUZZ_SECONDS ?? 0);

test("random damage never traps", async () => {
  // xorshift32
  let state = 88172645;
  const random = (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
  const files = lines("files.jsonl");
  let damaged = 0;
  for (const { file, secret } of files) {
    const end = Date.now() + (1000 * FUZZ_SECONDS) / files.length;
    for (let round = 0; round < 40 || Date.now() < end; round++) {
      const bytes = Uint8Array.from(bytesOf(file));
      for (let edit = 0; edit <= random(4); edit++) bytes[random(Math.min(bytes.length, 6000))] = random(256);
      for (const opened of [open, openRemote]) {
        try {
          const filter = await opened(new Blob([bytes]), { secret: secretOf({ secret }) });
          await filter.hasMany(["one", 7]);
          filter.close();
        } catch (error) {
          assert.ok(isRefusal(error), error.stack);
        }
      }
      damaged += 1;
    }
  }
  console.log(`random damage: ${damaged} files`);
});

test("a filter is filled, written and read back, by the program too", async () => {
  const filter = BloomFilter.withFpr(10_000, 0.001);
  const keys = Array.from({ length: 10_000 }, (_, index) => `https://example.com/${index}/ключ`.repeat(1 + (index % 9)));
  const isNew = filter.addMany(keys);
  assert.ok(isNew.filter(Boolean).length > 9_980);
  assert.equal(filter.add(keys[0]), false);
  assert.ok(filter.hasMany(keys).every(Boolean));
  const falsePositives = filter.hasMany(keys.map((key) => `${key}?`)).filter(Boolean).length;
  assert.ok(falsePositives <= 25, `${falsePositives} of 10,000`);
  const { inserted, capacity, targetFpr, estimatedFpr } = filter.info();
  assert.deepEqual([inserted, capacity, targetFpr], [isNew.filter(Boolean).length, 10_000, 0.001]);
  assert.ok(estimatedFpr > 0.0007 && estimatedFpr < 0.0012, `${estimatedFpr}`);
  const copy = await open(filter.toBytes());
  assert.ok(copy.hasMany(keys).every(Boolean));
  assert.deepEqual(copy.toBytes(), filter.toBytes());

  if (!process.env.PETAL) return;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "petal-js-"));
  after(() => fs.rmSync(folder, { recursive: true }));
  const file = path.join(folder, "seen.petal");
  fs.writeFileSync(file, filter.toBytes());
  const input = `${keys.join("\n")}\nhttps://example.org/\n`;
  const found = execFileSync(process.env.PETAL, ["check", file], { input, maxBuffer: 1 << 24 });
  assert.equal(found.toString(), input.replace("https://example.org/\n", ""));
});

test("keys are those of other languages, and ambiguous ones are refused", () => {
  const filter = BloomFilter.withFpr(1000, 1e-9);
  filter.add(258);
  assert.ok(filter.has(258n) && filter.has(Uint8Array.of(2, 1, 0, 0, 0, 0, 0, 0)) && !filter.has("258"));
  filter.add(2 ** 53 - 1);
  assert.ok(filter.has(2n ** 53n - 1n));
  filter.add(2n ** 64n - 1n);
  assert.ok(filter.has(new Uint8Array(8).fill(255)));
  filter.add("");
  assert.ok(filter.has(new Uint8Array()));
  const long = "é".repeat(100_000);
  filter.add(long);
  assert.ok(filter.has(new TextEncoder().encode(long)));
  for (const key of [0.5, -1, 2 ** 53, NaN, -1n, 2n ** 64n, true, null, undefined, {}, ["a"], "\ud800", Symbol("a")]) {
    assert.throws(() => filter.has(key), (error) => error instanceof TypeError || error instanceof RangeError);
    assert.throws(() => filter.hasMany(["a", key]), (error) => error instanceof TypeError || error instanceof RangeError);
  }
  assert.deepEqual(filter.hasMany([]), []);
  assert.equal(filter.hasMany(Array(5000).fill(258)).filter(Boolean).length, 5000);
});

test("arguments out of range are errors", async () => {
  for (const [capacity, fpr] of [[10, 0], [10, 1], [10, NaN], [10, undefined], [2 ** 50, 1e-9]]) {
    assert.throws(() => BloomFilter.withFpr(capacity, fpr), PetalError, `${capacity}, ${fpr}`);
  }
  for (const capacity of [0.5, -1, "10", undefined]) assert.throws(() => BloomFilter.withFpr(capacity, 0.1), TypeError);
  assert.throws(() => BloomFilter.withFpr(10, 0.1, { secret: new Uint8Array(8) }), TypeError);
  assert.throws(() => new Filter(), TypeError);
  assert.throws(() => new RemoteFilter(), TypeError);
  await assert.rejects(open(17), TypeError);
  await assert.rejects(open(path.join(set, "none.petal")), { code: "ENOENT" });
  const fixed = await open(path.join(set, "static-rapid.petal"));
  assert.throws(() => fixed.add("one"), failsWith("unsupported"));
  assert.throws(() => fixed.addMany(["one"]), failsWith("unsupported"));
  assert.ok(fixed.has("one"));
});

test("a secret that is apart is needed, and the right one", async () => {
  const secret = Uint8Array.from({ length: 16 }, (_, index) => index);
  const filter = BloomFilter.withFpr(100, 0.01, { secret });
  filter.add("one");
  const bytes = filter.toBytes();
  await assert.rejects(open(bytes), failsWith("secret"));
  await assert.rejects(open(bytes, { secret: new Uint8Array(16) }), failsWith("secret"));
  assert.ok((await open(bytes, { secret })).has("one"));
  assert.ok(await (await openRemote(new Blob([bytes]), { secret })).has("one"));
});

test("keys of an iterator are read when they are given, and may use the filter", () => {
  function* reused(...words) {
    const bytes = Buffer.alloc(4);
    for (const word of words) {
      bytes.write(word);
      assert.equal(filter.has("none"), false);
      yield bytes;
    }
  }
  const filter = BloomFilter.withFpr(100, 1e-9);
  assert.deepEqual(filter.addMany(reused("aaaa", "bbbb", "cccc")), [true, true, true]);
  assert.deepEqual(filter.hasMany(reused("cccc", "dddd", "aaaa")), [true, false, true]);
  assert.ok(filter.has("bbbb"));
  function* broken() {
    yield "before";
    throw new Error("of the iterator");
  }
  assert.throws(() => filter.addMany(broken()), /of the iterator/);
  assert.ok(filter.has("aaaa"));
});

test("large keys are whole, or an error", () => {
  const filter = BloomFilter.withFpr(5000, 1e-9);
  const keys = Array.from({ length: 1100 }, (_, index) => "é".repeat(500_000) + index);
  assert.ok(filter.addMany(keys).every(Boolean));
  assert.ok(filter.hasMany(keys).every(Boolean));
  assert.equal(filter.hasMany(keys.map((key) => `${key}!`)).filter(Boolean).length, 0);
  const big = "a".repeat(100_000_000);
  filter.add(big);
  assert.ok(filter.has(new TextEncoder().encode(big)) && !filter.has(`${big}!`));
  assert.throws(() => filter.has(new Uint8Array(2 ** 31)), failsWith("memory"));
  assert.ok(filter.has(keys[7]));
});

test("a file that cannot be read leaves other filters as they are", async () => {
  const filter = BloomFilter.withFpr(100, 0.01);
  filter.add("one");
  await assert.rejects(open(os.tmpdir()), { code: "EISDIR" });
  assert.ok(filter.has("one"));
  assert.ok((await open(filter.toBytes())).has("one"));
});

test("a trap is an error that says so, and filters can be opened again", async () => {
  // A module of its own, whose memory this test overwrites.
  const { instantiate } = WebAssembly;
  let memory;
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate(...args);
    memory = instance.exports.memory;
    return instance;
  };
  after(() => { WebAssembly.instantiate = instantiate; });
  const petal = await import("../../target/js/petal.js?trap");
  const trapped = (error) => {
    assert.ok(error instanceof petal.PetalError && error.kind === "trap", error.stack);
    assert.match(error.message, /^petal\.wasm: .+, and all filters in its memory are lost; open them again$/);
    return error.cause instanceof WebAssembly.RuntimeError;
  };
  for (let round = 0; round < 2; round++) {
    const bytes = BloomFilter.withFpr(100_000, 0.01).toBytes();
    const filter = await petal.open(bytes);
    const remote = await petal.openRemote(new Blob([bytes]));
    const slow = remote.hasMany(Array.from({ length: 50 }, (_, key) => key));
    assert.equal(filter.has("one"), false);
    new Uint8Array(memory.buffer).fill(0xff);
    assert.throws(() => filter.has("one"), trapped);
    const lost = () => {
      for (const use of [() => filter.has(1), () => filter.hasMany([1]), () => filter.info(), () => filter.toBytes()]) {
        assert.throws(use, trapped);
      }
    };
    lost();
    // No other module has started.
    assert.throws(() => petal.BloomFilter.withFpr(100, 0.01), trapped);
    await assert.rejects(slow, trapped);
    const again = await petal.open(BloomFilter.withFpr(100, 0.01).toBytes());
    again.add("two");
    // The new filter has the number of the first one.
    lost();
    await assert.rejects(remote.has(1), trapped);
    filter.close();
    remote.close();
    assert.throws(() => filter.has(1), { kind: "invalid" });
    assert.ok(again.has("two") && petal.BloomFilter.withFpr(100, 0.01).add("two"));
  }
});

test("many filters come and go", () => {
  for (let round = 0; round < 2000; round++) {
    const filter = BloomFilter.withFpr(10_000, 0.01);
    filter.add(round);
    assert.ok(filter.has(round));
    filter.close();
  }
});

// ---- Servers ------------------------------------------------------------------------------------

/** Serves `bytes`; `change` may change what is sent for a range. Returns the address, and the requests. */
async function serve(bytes, change = () => {}) {
  const requests = [];
  const server = http.createServer((request, response) => {
    const [, start, end] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "") ?? [];
    const [first, last] = [Number(start), Math.min(Number(end), bytes.length - 1)];
    requests.push(request.headers);
    const answer = {
      status: start === undefined ? 200 : 206,
      headers: { ETag: '"1"', "Content-Range": `bytes ${first}-${last}/${bytes.length}` },
      body: start === undefined ? bytes : bytes.subarray(first, last + 1),
    };
    if (change(answer, requests.length, response) === "silent") return;
    for (const [name, value] of Object.entries(answer.headers)) if (value !== null) response.setHeader(name, value);
    response.statusCode = answer.status;
    response.end(answer.body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}/known.petal`, requests };
}

function largeFilter(capacity = 100_000) {
  const filter = BloomFilter.withFpr(capacity, 0.01);
  filter.addMany(Array.from({ length: 100_000 }, (_, index) => index));
  return filter.toBytes();
}

test("a filter at an address is asked in ranges", async () => {
  const { url, requests } = await serve(largeFilter());
  const remote = await openRemote(url, { headers: { "X-Test": "yes" } });
  assert.equal(remote.info().inserted > 99_000, true);
  assert.equal(requests.length, 1);
  assert.equal(await remote.has(70_000), true);
  assert.ok(requests.length <= 2 && requests.every((headers) => headers["x-test"] === "yes"));
  const found = await remote.hasMany(Array.from({ length: 3000 }, (_, index) => 99_000 + index));
  assert.ok(found.slice(0, 1000).every(Boolean));
  assert.ok(found.slice(1000).filter(Boolean).length < 50);
  // At the same time: each query has its own answers.
  const many = await Promise.all(Array.from({ length: 40 }, (_, index) => remote.has(index < 20 ? index : `no ${index}`)));
  assert.ok(many.slice(0, 20).every(Boolean) && many.slice(20).filter(Boolean).length < 4);
  const whole = await open(url);
  assert.ok(whole.has(70_000));
  const before = requests.length;
  assert.ok((await remote.hasMany(Array.from({ length: 1000 }, (_, index) => 100 * index))).every(Boolean));
  assert.ok(requests.length - before <= 20, `${requests.length - before} requests`);
  remote.close();
  await assert.rejects(remote.has(1), failsWith("invalid"));
});

test("a server that does not what it should is an error, and takes bounded time", async () => {
  const bytes = largeFilter();
  const endless = (answer, count, response) => {
    response.writeHead(206, answer.headers);
    const timer = setInterval(() => response.write(Buffer.alloc(1 << 16)), 1);
    response.on("close", () => clearInterval(timer));
    return "silent";
  };
  const cases = {
    "ignores ranges": ["io", (answer) => Object.assign(answer, { status: 200, body: bytes })],
    "not found": ["io", (answer) => Object.assign(answer, { status: 404 })],
    "no Content-Range": ["io", (answer) => { answer.headers["Content-Range"] = null; }],
    "no version": ["io", (answer) => { answer.headers.ETag = null; }],
    "compresses": ["io", (answer) => { answer.headers["Content-Encoding"] = "gzip"; }],
    "short": ["io", (answer) => { answer.body = answer.body.subarray(1); }],
    "long": ["io", (answer) => { answer.body = Buffer.concat([answer.body, Buffer.alloc(9)]); }],
    "another range": ["io", (answer) => { answer.headers["Content-Range"] = `bytes 1-${answer.body.length}/${bytes.length}`; }],
    "endless": ["io", endless],
    "silent": ["io", () => "silent"],
    "other length": ["damaged", (answer) => { answer.headers["Content-Range"] = "bytes 0-16383/9007199254740991"; }],
    "replaced": ["changed", (answer, count) => { answer.headers.ETag = `"${count}"`; }],
    "grown": ["changed", (answer, count) => { if (count > 1) answer.headers["Content-Range"] += "0"; }],
    "fails later": ["io", (answer, count) => { if (count > 1) answer.status = 500; }],
    "breaks off": ["io", (answer, count, response) => { if (count > 1) { response.destroy(); return "silent"; } }],
  };
  for (const [name, [kind, change]] of Object.entries(cases)) {
    const { url } = await serve(bytes, change);
    const ask = async () => (await openRemote(url, { timeout: 500 })).has(70_000);
    await assert.rejects(ask(), (error) => failsWith(kind)(error) || assert.fail(`${name}: ${error.stack}`));
  }
  // One request fails: few are sent after it.
  const { url: failing, requests } = await serve(largeFilter(2_000_000), (answer, count) => {
    if (count > 1) answer.status = 500;
  });
  const remote = await openRemote(failing);
  await assert.rejects(remote.hasMany(Array.from({ length: 200 }, (_, index) => index)), failsWith("io"));
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.ok(requests.length <= 17, `${requests.length} requests`);

  const { url } = await serve(Buffer.from("<html>no filter</html>"));
  await assert.rejects(openRemote(url), failsWith("foreign"));
  const { url: fails } = await serve(bytes, (answer) => Object.assign(answer, { status: 503 }));
  await assert.rejects(open(fails), failsWith("io"));
  await assert.rejects(open("http://127.0.0.1:9/"), failsWith("io"));
  const { url: silent } = await serve(bytes, () => "silent");
  await assert.rejects(open(silent, { timeout: 300 }), failsWith("io"));
  for (const timeout of [0, -1, NaN, Infinity, "soon"]) await assert.rejects(openRemote(silent, { timeout }), TypeError);
  await assert.rejects(openRemote("http://user:hidden@127.0.0.1:9/"), (error) => !error.message.includes("hidden"));
  await assert.rejects(openRemote("file:///known.petal"), TypeError);
  const { url: needs, requests: sent } = await serve(bytes);
  await assert.rejects(openRemote(needs, { secret: new Uint8Array(3) }), TypeError);
  assert.equal(sent.length, 0);
  await openRemote(needs, { headers: new Headers({ Authorization: "Bearer x" }) });
  await open(needs, { headers: { Authorization: "Bearer x" } });
  assert.ok(sent.length === 2 && sent.every((headers) => headers.authorization === "Bearer x"));
});

test("types name every export and every method", async () => {
  const types = fs.readFileSync(path.join(root, "js/petal.d.ts"), "utf8");
  const module = await import("../../target/js/petal.js");
  const named = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map((match) => match[1]);
  assert.deepEqual(Object.keys(module).sort(), named.sort());
  for (const made of [Filter, RemoteFilter]) {
    const body = types.slice(types.indexOf(`class ${made.name} `)).split("\n}")[0];
    const methods = [...body.matchAll(/^ {2}(\w+)\(/gm)].map((match) => match[1]).filter((name) => name !== "constructor");
    const found = Object.getOwnPropertyNames(made.prototype).filter((name) => name !== "constructor");
    assert.deepEqual(found.sort(), methods.sort());
  }
});

test("each module is small enough to be downloaded", async () => {
  const { brotliCompressSync } = await import("node:zlib");
  for (const name of ["petal.wasm", "petal-basic.wasm"]) {
    const length = brotliCompressSync(fs.readFileSync(path.join(root, "target/js", name))).length;
    assert.ok(length <= 150_000, `${name}: ${length} bytes`);
  }
});

// ---- Page ---------------------------------------------------------------------------------------

test("the page runs", { skip: !process.env.PETAL && "needs the program" }, () => {
  const page = fs.readFileSync(path.join(root, "docs/guides/javascript.md"), "utf8");
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "petal-js-page-"));
  after(() => fs.rmSync(folder, { recursive: true }));
  fs.mkdirSync(path.join(folder, "node_modules"));
  fs.symlinkSync(path.join(root, "target/js"), path.join(folder, "node_modules/petal-filters"));
  fs.copyFileSync(path.join(root, "testdata/b.txt"), path.join(folder, "b.txt"));
  const environment = { ...process.env, PATH: `${path.dirname(process.env.PETAL)}:${process.env.PATH}` };
  let run = 0;
  for (const [, file, language, text] of page.matchAll(/(?:<!-- file: (\S+) -->\n)?(?:<!-- not run: needs [^]*? -->\n```(?:\w+)[^]*?```|```(\w+)\n([^]*?)```)/g)) {
    if (language === "javascript" && file) fs.writeFileSync(path.join(folder, file), text);
    if (language !== "console") continue;
    for (const part of `\n${text}`.split("\n$ ").slice(1)) {
      const [command, ...output] = part.split("\n");
      const options = { cwd: folder, env: environment, shell: "/bin/bash" };
      const found = execFileSync(command, options).toString().trim();
      if (output.join("").trim()) assert.equal(found, output.join("\n").trim(), command);
      run += 1;
    }
  }
  assert.ok(run >= 3, `${run} commands`);
});
