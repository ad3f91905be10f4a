/**
 * Filters for approximate set membership: petal's library, compiled to WebAssembly.
 *
 * A filter answers "certainly not" or "probably": `false` is certain, `true` is wrong at the filter's rate. The files are
 * those of petal in every language.
 */

/**
 * A key: a string is its UTF-8 bytes, a `Uint8Array` is its bytes, a number from 0 to 2^53 - 1 or a bigint from 0 to
 * 2^64 - 1 is eight bytes, the lowest first. The number 1 and the string "1" are different keys. Anything else, such as
 * 0.5, -1 or a string with half of a surrogate pair, is an error.
 */
export type Key = string | Uint8Array | number | bigint;

/** What went wrong: `offset` is where a file is damaged. */
export class PetalError extends Error {
  /**
   * - `foreign`: no file of petal
   * - `unsupported`: another version, or a type that JavaScript does not read or change
   * - `damaged`: fetch the file again
   * - `secret`: the secret of the filter is missing or wrong
   * - `changed`: the file at an address was replaced
   * - `io`: a server did not answer as it must
   * - `memory`: WebAssembly has 4 GiB
   * - `trap`: the WebAssembly module stopped within a call, often because memory was used up; all filters are lost, and
   *   `open` uses a new module. `cause` is WebAssembly's error.
   * - `invalid`: an argument
   */
  kind: "foreign" | "unsupported" | "damaged" | "secret" | "changed" | "io" | "memory" | "trap" | "invalid";
  offset: number;
}

export interface Info {
  /** "bloom", "classic", "static", "static-fuse" or "cascade". */
  type: string;
  /** The number of keys that were added and were new. */
  inserted: number;
  /** The size of the file's data, or of a file at an address, in bytes. */
  sizeBytes: number;
  /** The metadata of the file, which is often JSON. */
  metadata: string;
  /** The number of keys, and the false-positive rate, that it was made for, if the file has them; not at an address. */
  capacity?: number;
  targetFpr?: number;
  /** The false-positive rate by its data; not at an address. */
  estimatedFpr?: number;
}

export interface SecretOption {
  /** The 16 bytes of a secret that is not in the file; other filters ignore it. */
  secret?: Uint8Array;
}

/** How a file at an address is requested. */
export interface RequestOptions extends SecretOption {
  /** Headers of each request. */
  headers?: HeadersInit;
  /** Milliseconds for each request; 30,000 without it. */
  timeout?: number;
}

/** A filter in memory. Ends with `close`, or when nothing refers to it. */
export class Filter {
  protected constructor();
  /** Whether the key may be in the filter; `false` is certain. */
  has(key: Key): boolean;
  /** `has` for many keys, in their order; about as fast for each as `has`. */
  hasMany(keys: Iterable<Key>): boolean[];
  /** Adds a key; returns whether it certainly was not in the filter. Static filters and cascades never change. */
  add(key: Key): boolean;
  /** `add` for many keys. After an error, keys before the wrong one may be in the filter. */
  addMany(keys: Iterable<Key>): boolean[];
  /** The bytes of the filter's file, with its metadata. */
  toBytes(): Uint8Array;
  /** The numbers of the filter; reads all of it. */
  info(): Info;
  /** Frees its memory. */
  close(): void;
}

export class BloomFilter extends Filter {
  /** An empty Bloom filter for `capacity` keys, with a false-positive rate of at most `fpr` when they are in it. */
  static withFpr(capacity: number, fpr: number, options?: SecretOption): BloomFilter;
}

/**
 * Opens a filter and verifies every byte of it. In Node a string is a path, or an address that begins with http:, https:
 * or file:; in a browser it is an address.
 */
export function open(source: string | URL | Blob | ArrayBuffer | Uint8Array, options?: RequestOptions): Promise<Filter>;

/** A filter elsewhere: only the parts that a key needs are read. */
export class RemoteFilter {
  private constructor();
  /** As `Filter.has`. Cost: usually one or two requests, none if the bytes are among the first 16 KiB. */
  has(key: Key): Promise<boolean>;
  /**
   * `has` for many keys: ranges with at most 8 KiB between them are one request, and eight requests run at a time. Of
   * small filters that is soon the whole file: see `open`.
   */
  hasMany(keys: Iterable<Key>): Promise<boolean[]>;
  info(): Info;
  close(): void;
}

/**
 * Opens a Bloom filter (`bloom` or `classic`), a static filter in the ribbon layout, or a cascade, at an address or in a
 * `Blob` such as a file that a user has chosen, of any size. Reads 16 KiB, and more only for long metadata. The server must answer ranges, and send
 * `ETag` or `Last-Modified`; one of another origin also
 * `Access-Control-Expose-Headers: Content-Range, ETag`. It learns the ranges, not the keys. The data are not verified.
 */
export function openRemote(source: string | URL | Blob, options?: RequestOptions): Promise<RemoteFilter>;
