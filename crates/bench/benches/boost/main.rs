//! petal's Bloom filters beside the fastest ones of Boost.Bloom and beside fastbloom, in one run.
//!
//! ns per mixed hash, on one thread. See `petal_bench::harness` for how it is measured. Boost's loops over keys are
//! compiled by its compiler, so that its calls are inlined, too. Its inserts do not report whether a key was new; petal's are measured
//! with a result ("insert") and without ("put").
//!
//! Boost.Bloom (Boost 1.89 or newer) and a C++20 compiler are not installed by this project:
//!
//! ```console
//! $ g++ -std=c++20 -O3 -march=native -I BOOST -c crates/bench/benches/boost/boost.cpp -o boost.o
//! $ ar rcs target/libpetal_boost.a boost.o
//! $ LIBRARY_PATH=target cargo bench -p petal-bench --features boost --bench boost
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]
#![allow(unsafe_code, reason = "functions in C++")]

use std::ffi::c_void;
use std::process::ExitCode;

use clap::Parser;
use petal::Kernel;
use petal_bench::args;
use petal_bench::harness::adapters::{BenchFilter, FilterOps, PerKey};
use petal_bench::harness::keys::Keys;
use petal_bench::harness::library::{Model, kernels, put};
use petal_bench::harness::program::{FilterArgs, Program};
use petal_bench::harness::{Case, Form, KeyKind, Operation};

/// Times petal, Boost.Bloom and fastbloom. Default: 100000 and 1000000 keys
#[derive(Parser)]
#[command(name = "boost", bin_name = "boost")]
struct Args {
    #[command(flatten)]
    args: FilterArgs,
}

const FPR: f64 = 0.01;

fn main() -> ExitCode {
    let program = Program {
        suite: "boost",
        command: "LIBRARY_PATH=target cargo bench -p petal-bench --features boost --bench boost --",
        numbers: &[100_000, 1_000_000],
        cases,
    };
    args::main(|Args { args }| {
        print!("{}", program.run(&args, &|line| eprintln!("{line}"))?);
        Ok(())
    })
}

fn cases(keys: u64) -> Result<Vec<Case>, String> {
    let mut all = Vec::new();
    for form in [Form::Batch, Form::Single] {
        for kernel in kernels() {
            all.push(Model::Rate(FPR).case(keys, KeyKind::Hash, form, kernel)?);
            all.push(put(keys, FPR, form, kernel)?);
        }
        for kernel in kernels() {
            if kernel == Kernel::Portable || kernel == Kernel::Avx512 {
                all.push(Model::Classic(FPR).case(keys, KeyKind::Hash, form, kernel)?);
            }
        }
        // Bits per key of 1 % (docs/design/filters.md, "Space").
        all.push(boost("Boost fast_multiblock32", &FM32, 10.53, keys, form));
        all.push(boost("Boost fast_multiblock64", &FM64, 10.10, keys, form));
    }
    all.push(fastbloom(keys));
    Ok(all)
}

fn fastbloom(keys: u64) -> Case {
    let filter = fastbloom::BloomFilter::with_false_pos(FPR).seed(&1).expected_items(keys as usize);
    let bits = filter.num_bits() as f64;
    let tested = PerKey::new(
        FilterOps::new(filter, Keys::numbers, fastbloom::BloomFilter::clear),
        |filter, &hash: &u64| filter.insert_hash(hash),
        |filter, &hash: &u64| filter.contains_hash(hash),
    );
    case("fastbloom", bits / keys as f64, Form::Single, Box::new(tested))
}

fn case(name: &str, bits_per_key: f64, form: Form, tested: Box<dyn BenchFilter>) -> Case {
    Case {
        filter: name.to_owned(),
        target: Some(FPR),
        bits_per_key,
        kind: KeyKind::Hash,
        form,
        kernel: None,
        threads: 1,
        operations: &Operation::ALL,
        fills_at_once: false,
        is_filter: true,
        tested,
    }
}

/// The functions of one filter type of `boost.cpp`.
struct Functions {
    new: unsafe extern "C" fn(usize) -> *mut c_void,
    bits: unsafe extern "C" fn(*const c_void) -> usize,
    clear: unsafe extern "C" fn(*mut c_void),
    insert: unsafe extern "C" fn(*mut c_void, *const u64, usize),
    insert_bulk: unsafe extern "C" fn(*mut c_void, *const u64, usize),
    count: unsafe extern "C" fn(*const c_void, *const u64, usize) -> usize,
    contains_bulk: unsafe extern "C" fn(*const c_void, *const u64, usize, *mut u64),
}

macro_rules! functions {
    ($table:ident: $new:ident $bits:ident $clear:ident $insert:ident $insert_bulk:ident $count:ident $contains:ident) => {
        #[link(name = "petal_boost")]
        #[link(name = "stdc++")]
        unsafe extern "C" {
            fn $new(bits: usize) -> *mut c_void;
            fn $bits(filter: *const c_void) -> usize;
            fn $clear(filter: *mut c_void);
            fn $insert(filter: *mut c_void, keys: *const u64, len: usize);
            fn $insert_bulk(filter: *mut c_void, keys: *const u64, len: usize);
            fn $count(filter: *const c_void, keys: *const u64, len: usize) -> usize;
            fn $contains(filter: *const c_void, keys: *const u64, len: usize, found: *mut u64);
        }
        static $table: Functions = Functions {
            new: $new,
            bits: $bits,
            clear: $clear,
            insert: $insert,
            insert_bulk: $insert_bulk,
            count: $count,
            contains_bulk: $contains,
        };
    };
}

functions!(FM32: fm32_new fm32_bits fm32_clear fm32_insert fm32_insert_bulk fm32_count fm32_contains_bulk);
functions!(FM64: fm64_new fm64_bits fm64_clear fm64_insert fm64_insert_bulk fm64_count fm64_contains_bulk);

/// A filter of Boost, which exists until the program ends.
struct Boost {
    filter: *mut c_void,
    functions: &'static Functions,
    form: Form,
    found: Vec<u64>,
    hits: u64,
}

fn boost(name: &str, functions: &'static Functions, bits: f64, keys: u64, form: Form) -> Case {
    // SAFETY: the functions take any number of bits, and the filter that they made.
    let (filter, bits) = unsafe {
        let filter = (functions.new)((bits * keys as f64) as usize);
        (filter, (functions.bits)(filter))
    };
    let tested = Boost { filter, functions, form, found: Vec::new(), hits: 0 };
    case(name, bits as f64 / keys as f64, form, Box::new(tested))
}

impl BenchFilter for Boost {
    fn clear(&mut self) {
        // SAFETY: a filter of these functions.
        unsafe { (self.functions.clear)(self.filter) };
    }

    fn insert(&mut self, keys: &Keys) {
        let keys = keys.numbers();
        let insert = if self.form == Form::Batch {
            self.functions.insert_bulk
        } else {
            self.functions.insert
        };
        // SAFETY: a filter of these functions, and a borrowed slice.
        unsafe { insert(self.filter, keys.as_ptr(), keys.len()) };
    }

    fn query(&mut self, keys: &Keys) {
        let keys = keys.numbers();
        // SAFETY: as above; there is a word for 64 results.
        unsafe {
            if self.form == Form::Single {
                self.hits = (self.functions.count)(self.filter, keys.as_ptr(), keys.len()) as u64;
                return;
            }
            self.found.clear();
            self.found.resize(keys.len().div_ceil(64), 0);
            let found = self.found.as_mut_ptr();
            (self.functions.contains_bulk)(self.filter, keys.as_ptr(), keys.len(), found);
        }
        self.hits = self.found.iter().map(|word| u64::from(word.count_ones())).sum();
    }

    fn hits(&self) -> u64 {
        self.hits
    }
}
