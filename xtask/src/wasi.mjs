// Runs a WebAssembly program of the target wasm32-wasip1 in Node, with the file system of the
// caller: cargo's "runner" for that target (`cargo x wasm`).
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [file, ...rest] = process.argv.slice(2);
const wasi = new WASI({
  version: "preview1",
  args: [file, ...rest],
  env: process.env,
  preopens: { "/": "/" },
  returnOnExit: true,
});
const module = await WebAssembly.compile(await readFile(file));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
