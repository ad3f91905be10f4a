//! The crate poppy-filters: writes a Bloom filter of lines and queries one.

use std::error::Error;
use std::fs::File;
use std::process::ExitCode;

use poppy_filters::{BloomFilter, OptLevel, Params};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("poppy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<()> {
    match args {
        ["version"] => println!("poppy-filters 0.2.1"),
        ["write", variant, n, rate, members, out] => {
            let params = Params::new(n.parse()?, rate.parse()?);
            let params = match *variant {
                "v1" => params.version(1),
                "plain" => params,
                "space" => params.opt(OptLevel::Space),
                "speed" => params.opt(OptLevel::Speed),
                "best" => params.opt(OptLevel::Best),
                _ => return Err(format!("no variant {variant}").into()),
            };
            let mut filter = BloomFilter::try_from(params)?;
            // Lines without CR LF or LF, as in the program poppy.
            for line in std::fs::read_to_string(members)?.lines() {
                filter.insert_bytes(line)?;
            }
            filter.write(&mut File::create(out)?)?;
        }
        ["check", _, file, keys] => {
            let filter = BloomFilter::from_reader(File::open(file)?)?;
            for line in std::fs::read_to_string(keys)?.lines() {
                println!("{}", u8::from(filter.contains_bytes(line)));
            }
        }
        _ => return Err("version, write or check".into()),
    }
    Ok(())
}
