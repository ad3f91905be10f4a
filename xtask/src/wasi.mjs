// Runs a WebAssembly program in Node, with access to the file system: cargo's runner for wasm32-wasip1 (`cargo x wasm`).
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
