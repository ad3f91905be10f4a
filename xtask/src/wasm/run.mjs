// Runs a WebAssembly program that needs nothing from outside; its exit code is this one's.
import { readFileSync } from "node:fs";

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {});
process.exit(instance.exports.main(0, 0));
