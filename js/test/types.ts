// Compiled, not run: uses of the package that TypeScript must accept, and two that it must not.

import {
  BloomFilter, Filter, PetalError, RemoteFilter, open, openRemote, type Info, type Key,
} from "../../target/js/petal.js";

export async function uses(): Promise<void> {
  const seen: BloomFilter = BloomFilter.withFpr(1000, 0.01, { secret: new Uint8Array(16) });
  const isNew: boolean = seen.add("a");
  const found: boolean[] = seen.hasMany(new Set<Key>(["a", 1, 2n, new Uint8Array(2)]));
  const copy: Filter = await open(seen.toBytes());
  const options = { timeout: 5, headers: { Authorization: "Bearer" } };
  const remote: RemoteFilter = await openRemote(new URL("https://files.example/x"), options);
  const info: Info = remote.info();
  const present: boolean = await remote.has("x");
  try {
    copy.has("a");
  } catch (error) {
    if (error instanceof PetalError && error.kind === "foreign") console.log(error.offset.toFixed());
  }
  // @ts-expect-error null is no key
  seen.has(null);
  // @ts-expect-error a filter is opened or built
  new Filter();
  console.log(isNew, found, info.type, present);
}
