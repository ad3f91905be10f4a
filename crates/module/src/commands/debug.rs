//! `BF.DEBUG` and `CF.DEBUG`: the layers of a filter as lines of text, in RedisBloom's format.

use super::{bloom, cf};
use crate::about::{ASKED, About, Arg, key};
use crate::ffi::{Call, Command, Failure};
use crate::object::LayerInfo;

const NOT_FOUND: Failure = Failure::Says("ERR not found");

pub(super) struct Bloom;

impl Command for Bloom {
    const ABOUT: About = About {
        name: c"BF.DEBUG",
        summary:
            c"The number of items of a Bloom filter, and bytes, bits, hashes, capacity, items \
            and error rate of each layer, one line each",
        complexity: c"O(layers)",
        since: c"0.1.0",
        arity: 2,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[Arg::key()],
        categories: c"bloom",
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let object = bloom(key.object())?.ok_or(NOT_FOUND)?;
        let layers = object.layers();
        call.array(1 + layers.len());
        call.bytes(format!("size:{}", object.figures().items).as_bytes());
        for layer in &layers {
            call.bytes(line(layer).as_bytes());
        }
        Ok(())
    }
}

fn line(layer: &LayerInfo) -> String {
    let LayerInfo { bytes, bits, probes, hash_bits, capacity, items, rate } = *layer;
    format!(
        "bytes:{bytes} bits:{bits} hashes:{probes} hashwidth:{hash_bits} capacity:{capacity} \
         size:{items} ratio:{}",
        general(rate)
    )
}

/// A number with six significant digits, as C's `%g` prints it.
fn general(number: f64) -> String {
    const DIGITS: i32 = 6;
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let trimmed = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    if (-4..DIGITS).contains(&power) {
        return trimmed(&format!("{number:.*}", (DIGITS - 1 - power) as usize));
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), power.abs())
}

pub(super) struct Cuckoo;

impl Command for Cuckoo {
    const ABOUT: About = About {
        name: c"CF.DEBUG",
        summary: c"Buckets, items, deletions, layers and parameters of a filter, in one line",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: 2,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[Arg::key()],
        categories: c"cuckoo",
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let info = cf::filter(key.object())?.ok_or(NOT_FOUND)?.figures();
        let line = format!(
            "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
            info.bucket_size,
            info.buckets,
            info.items,
            info.deleted,
            info.layers,
            info.iterations,
            info.expansion
        );
        call.bytes(line.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_c_prints_them() {
        for (number, text) in [
            (0.0, "0"),
            (0.005, "0.005"),
            (0.0005, "0.0005"),
            (0.0001, "0.0001"),
            (6.25e-5, "6.25e-05"),
            (3.125e-5, "3.125e-05"),
            (1.52587890625e-10, "1.52588e-10"),
            (0.333_333_333, "0.333333"),
            (0.999_999_9, "1"),
            (9.999_999e-5, "0.0001"),
            (1e-100, "1e-100"),
        ] {
            assert_eq!(general(number), text);
        }
    }
}
