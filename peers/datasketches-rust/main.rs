//! The crate datasketches: writes a Bloom filter of lines and queries one.

use std::error::Error;
use std::hash::Hash;
use std::process::ExitCode;

use datasketches::bloom::{BloomFilter, BloomFilterBuilder};
use datasketches::hash::value::raw_bytes;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("datasketches-rust: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<()> {
    match args {
        ["version"] => println!("datasketches-rust 0.6.0"),
        ["write", variant, n, rate, members, out] => {
            let builder = BloomFilterBuilder::with_accuracy(n.parse()?, rate.parse()?);
            let mut filter = builder.build()?;
            for line in std::fs::read_to_string(members)?.lines() {
                visit(variant, line, Insert(&mut filter))?;
            }
            std::fs::write(out, filter.serialize())?;
        }
        ["check", variant, file, keys] => {
            let filter = BloomFilter::deserialize(&std::fs::read(file)?)?;
            for line in std::fs::read_to_string(keys)?.lines() {
                println!("{}", u8::from(visit(variant, line, Query(&filter))?));
            }
        }
        _ => return Err("version, write or check".into()),
    }
    Ok(())
}

/// An action on a key of any type.
trait Visitor {
    fn visit(self, key: impl Hash) -> bool;
}

struct Insert<'a>(&'a mut BloomFilter);
struct Query<'a>(&'a BloomFilter);

impl Visitor for Insert<'_> {
    fn visit(self, key: impl Hash) -> bool {
        self.0.insert(key);
        true
    }
}

impl Visitor for Query<'_> {
    fn visit(self, key: impl Hash) -> bool {
        self.0.contains(&key)
    }
}

fn visit(variant: &str, line: &str, visitor: impl Visitor) -> Result<bool> {
    Ok(match variant {
        "str" => visitor.visit(line),
        "slice" => visitor.visit(line.as_bytes()),
        "raw" => visitor.visit(raw_bytes::from_str(line)),
        "i64" => visitor.visit(line.parse::<i64>()?),
        "u64" => visitor.visit(line.parse::<u64>()?),
        "i32" => visitor.visit(line.parse::<i32>()?),
        "u32" => visitor.visit(line.parse::<u32>()?),
        _ => return Err(format!("no variant {variant}").into()),
    })
}
