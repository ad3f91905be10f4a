// Times a filter in Node: node ask.mjs PACKAGE TYPE FOLDER. PACKAGE is the file of petal or, of type `rival`,
// that of bloom-filters, which is asked for 20000 keys: it needs a thousand times as long.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [library, type, folder] = process.argv.slice(2);
const keys = (name) => readFileSync(`${folder}/${name}.txt`, "utf8").trimEnd().split("\n");
const { open, BloomFilter, default: rivals } = await import(pathToFileURL(library));
const present = keys("present");
let filter;
if (type === "rival") {
  filter = (BloomFilter ?? rivals.BloomFilter).create(present.length, 0.01);
  for (const key of present) filter.add(key);
} else {
  filter = await open(`${folder}/${type}.petal`);
}

function ask(asked) {
  let found = 0;
  for (const key of asked) if (filter.has(key)) found++;
  return found;
}

function measure(name, asked) {
  let found = ask(asked);
  const times = [];
  for (let round = 0; round < 5; round++) {
    const start = process.cpuUsage();
    found = ask(asked);
    const { user, system } = process.cpuUsage(start);
    times.push((1000 * (user + system)) / asked.length);
  }
  times.sort((one, two) => one - two);
  console.log(`${name} ${times[2].toFixed(3)} ${found}`);
}

const limit = type === "rival" ? 20_000 : Infinity;
measure("present", present.slice(0, limit));
measure("absent", keys("absent").slice(0, limit));
