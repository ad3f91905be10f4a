//! `BF.DEBUG` and `CF.DEBUG`: the layers of a filter as text, in RedisBloom's format.

use super::{bloom, cf};
use crate::bindings::command_spec::{Arg, CommandSpec, RO_ACCESS, first_key};
use crate::bindings::{Call, Command, ReplyError};
use crate::filters::LayerInfo;

pub(super) struct Bloom;

impl Command for Bloom {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.DEBUG",
        summary:
            c"Returns the number of items of a Bloom filter, and one line per layer: bytes, bits, \
            hashes, capacity, items and error rate",
        complexity: c"O(layers)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let stored = bloom(key.filter())?.ok_or(ReplyError::NOT_FOUND)?;
        let layers = stored.layers();
        call.array(1 + layers.len());
        call.bytes(format!("size:{}", stored.info().items).as_bytes());
        for layer in &layers {
            call.bytes(format_layer(layer).as_bytes());
        }
        Ok(())
    }
}

fn format_layer(layer: &LayerInfo) -> String {
    let LayerInfo { bytes, bits, probes, hash_bits, capacity, items, target_fpr } = *layer;
    format!(
        "bytes:{bytes} bits:{bits} hashes:{probes} hashwidth:{hash_bits} capacity:{capacity} \
         size:{items} ratio:{}",
        format_general(target_fpr)
    )
}

/// Formats a number like C's `%g`, with six significant digits.
fn format_general(number: f64) -> String {
    const DIGITS: i32 = 6;
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        return trimmed(&format!("{number:.*}", (DIGITS - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

pub(super) struct Cuckoo;

impl Command for Cuckoo {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.DEBUG",
        summary:
            c"Returns buckets, items, deletions, layers and parameters of a filter in one line",
        complexity: c"O(1)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let info = cf::filter(key.filter())?.ok_or(ReplyError::NOT_FOUND)?.info();
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
    fn numbers_are_formatted_as_in_c() {
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
            assert_eq!(format_general(number), text);
        }
    }
}
