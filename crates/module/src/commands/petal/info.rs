//! `PETAL.INFO`: type, parameters and state of a filter, except the key of its hash.

use std::ffi::CStr;

use petal::{AnyFilter, Membership as _};

use crate::bindings::command_spec::{Arg, CommandSpec, RO_ACCESS, first_key};
use crate::bindings::{Call, Command, ReplyError};
use crate::commands::args::is_option;
use crate::filters::{StoredFilter, StoredType};

pub(in crate::commands) struct Info;

impl Command for Info {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.INFO",
        summary:
            c"Returns type, parameters and state of a filter. FULL adds estimates from its bits: \
            items, false-positive rate and fill ratio",
        complexity:
            c"O(1); with FULL O(bytes), about one second per GB, during which the server is \
            blocked",
        flags: c"readonly",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::flag(c"full", c"FULL")],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let full = match call.len() {
            2 => false,
            3 if is_option(call.arg(2), "FULL") => true,
            3 => return Err(ReplyError::Static("ERR the only option is FULL")),
            _ => return Err(ReplyError::WrongArity),
        };
        let key = call.open_read(1);
        let fields = fields(key.filter().any_filter()?.ok_or(ReplyError::NOT_FOUND)?, full);
        call.map(fields.len());
        for (name, value) in fields {
            call.simple(name);
            match value {
                Value::Text(text) => call.bytes(text.as_bytes()),
                Value::Count(number) => call.count(number),
                Value::Number(number) => call.double(number),
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Count(u64),
    Number(f64),
}

/// Returns the fields of a filter; with `full` also those that need a pass over its bits.
fn fields(stored: &StoredFilter, full: bool) -> Vec<(&'static CStr, Value)> {
    let text = |text: &str| Value::Text(text.to_owned());
    let mut fields = Vec::new();
    let mut push = |name, value| fields.push((name, value));
    if let StoredFilter::Partial(import) = stored {
        if let Some(reason) = import.damage() {
            push(c"type", text("damaged"));
            push(c"reason", text(reason));
            push(c"memory", Value::Count(stored.memory_usage()));
            return fields;
        }
        push(c"type", text("incomplete"));
        push(c"bytes-received", Value::Count(import.received_bytes()));
        push(c"bytes-total", Value::Count(import.total_bytes()));
        push(c"memory", Value::Count(stored.memory_usage()));
        return fields;
    }
    let (common, info) = (stored.as_dyn(), stored.info());
    match (common, stored.stored_type()) {
        (Some(common), _) => {
            push(c"type", text(common.filter_type().name()));
            push(c"layout", Value::Text(common.describe()));
            push(c"hash", text(common.hash_spec().name()));
        }
        (None, StoredType::RedisBloom) => push(c"type", text("redisbloom")),
        (None, StoredType::RedisCuckoo) => push(c"type", text("redisbloom-cuckoo")),
        (None, StoredType::Petal) => push(c"type", text("cuckoo")),
    }
    push(c"capacity", Value::Count(info.capacity));
    // RedisBloom's cuckoo filters have no target.
    if info.target_fpr > 0.0 {
        push(c"target-fpr", Value::Number(info.target_fpr));
    }
    push(c"items", Value::Count(info.items));
    push(c"memory", Value::Count(info.size));
    push(c"layers", Value::Count(info.layers));
    if let Some(growth) = info.expansion {
        push(c"expansion", Value::Count(growth));
    }
    match stored {
        StoredFilter::Window(filter) => {
            push(c"generations", Value::Count(filter.generations().into()));
            push(c"generation-capacity", Value::Count(filter.generation_capacity()));
            push(c"fullest-generation", Value::Count(filter.fullest_generation()));
            match filter.window_ticks() {
                Some(time) => {
                    push(c"window-ms", Value::Count(time));
                    push(c"clock-ms", Value::Count(filter.now()));
                }
                None => push(c"window-items", Value::Count(filter.capacity())),
            }
        }
        StoredFilter::Scalable(filter) => {
            push(c"layer-capacity-left", Value::Count(filter.layer_capacity_left()));
            if let Some(parts) = filter.growth_share() {
                push(c"growth-share", Value::Count(parts));
            }
        }
        StoredFilter::Filter(filter) => match &**filter {
            AnyFilter::Bloom(_) if stored.saturates() => push(c"saturates", Value::Count(1)),
            AnyFilter::Counting(filter) => push(c"max-count", Value::Count(filter.max_count())),
            AnyFilter::CountingClassic(filter) => {
                push(c"max-count", Value::Count(filter.max_count()));
            }
            _ => {}
        },
        StoredFilter::QuotientChain(_)
        | StoredFilter::Partial(_)
        | StoredFilter::RedisBloom(_)
        | StoredFilter::RedisCuckoo(_) => {}
    }
    if let Some(common) = common.filter(|_| full) {
        let stats = common.stats();
        push(c"estimated-items", Value::Number(stats.estimated_len));
        push(c"estimated-fpr", Value::Number(stats.estimated_fpr));
        push(c"fill-ratio", Value::Number(stats.fill_ratio));
        push(c"overfull", Value::Count(stats.is_overfull.into()));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::{FilterKind, FilterSpec, Growth, Insertion};

    /// A burst stays visible after its generation is no longer the newest.
    #[test]
    fn fullest_generation_includes_older_generations() {
        let kind = FilterKind::Window { milliseconds: Some(900), generations: 4 };
        let spec = FilterSpec { kind, fpr: 0.01, capacity: 300, seed: [0xab; 16] };
        let mut stored = spec.build(u64::MAX).unwrap();
        let field = |stored: &StoredFilter, name: &CStr| {
            let mut fields = fields(stored, false).into_iter();
            fields.find_map(|(found, value)| (found == name).then_some(value))
        };
        assert_eq!(field(&stored, c"generation-capacity"), Some(Value::Count(100)));
        for (now, keys, fullest) in [(0, 0..50u64, 50), (310, 50..200, 150), (650, 200..210, 150)] {
            stored.advance(now);
            for key in keys {
                let inserted = stored.insert(&key.to_le_bytes(), u64::MAX);
                assert_eq!(inserted, Ok(Insertion::New));
            }
            assert_eq!(field(&stored, c"fullest-generation"), Some(Value::Count(fullest)), "{now}");
        }
    }

    #[test]
    fn fields_are_unique_and_contain_no_seed() {
        let kinds = [
            FilterKind::Bloom { growth: None },
            FilterKind::Bloom { growth: Some(Growth::by(2)) },
            FilterKind::Counting,
            FilterKind::VectorQuotient,
            FilterKind::Window { milliseconds: None, generations: 4 },
            FilterKind::Window { milliseconds: Some(1000), generations: 4 },
            FilterKind::Cuckoo { expansion: 1, bucket_size: 2, iterations: 20 },
        ];
        for kind in kinds {
            let spec = FilterSpec { kind, fpr: 0.01, capacity: 1000, seed: [0xab; 16] };
            let stored = spec.build(u64::MAX).unwrap();
            let fields = fields(&stored, true);
            let mut names: Vec<_> = fields.iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), fields.len(), "{kind:?}");
            assert!(!format!("{fields:?}").contains("abab"), "{fields:?}");
        }
    }
}
