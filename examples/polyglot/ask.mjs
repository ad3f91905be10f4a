// Prints the lines of the input that a filter file may contain: node ask.mjs PACKAGE FILTER.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [library, path] = process.argv.slice(2);
const { open } = await import(pathToFileURL(library));
const filter = await open(path);
const found = [];
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (filter.has(line)) found.push(`${line}\n`);
}
process.stdout.write(found.join(""));
