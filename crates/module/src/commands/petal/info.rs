//! `PETAL.INFO`: all that is known of a filter, but the key of its hash.

use std::ffi::CStr;

use petal::rate::overfull;
use petal::{AnyFilter, FilterType};

use super::{KEY, NOT_FOUND, PETAL};
use crate::about::{ASKED, About, Arg, key};
use crate::commands::words::is;
use crate::ffi::{Call, Command, Failure};
use crate::object::{Kind, Object};

pub(in crate::commands) struct Info;

impl Command for Info {
    const ABOUT: About = About {
        name: c"PETAL.INFO",
        summary: c"All that is known of a filter. FULL: also what it holds and how often it errs \
            now, which takes reading it",
        complexity: c"O(1); with FULL O(bytes), about a second for each GB, in which nobody \
            else is served",
        since: c"0.1.0",
        arity: -2,
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[KEY, Arg::flag(c"full", c"FULL")],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        let full = match call.len() {
            2 => false,
            3 if is(call.word(2), "FULL") => true,
            3 => return Err(Failure::Says("ERR the only option is FULL")),
            _ => return Err(Failure::Arity),
        };
        let key = call.read(1);
        let fields = fields(key.object().any()?.ok_or(NOT_FOUND)?, full);
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

/// What is known of an object; with `full` also what all its bits tell.
fn fields(object: &Object, full: bool) -> Vec<(&'static CStr, Value)> {
    let text = |text: &str| Value::Text(text.to_owned());
    let mut fields = Vec::new();
    let mut tell = |name, value| fields.push((name, value));
    if let Object::Incoming(incoming) = object {
        if let Some(reason) = incoming.damage() {
            tell(c"type", text("damaged"));
            tell(c"reason", text(reason));
            tell(c"memory", Value::Count(object.memory_usage()));
            return fields;
        }
        // Of a filter that is still coming nothing else is known.
        tell(c"type", text("incomplete"));
        tell(c"bytes-come", Value::Count(incoming.came()));
        tell(c"bytes-in-all", Value::Count(incoming.total()));
        tell(c"memory", Value::Count(object.memory_usage()));
        return fields;
    }
    let (face, figures) = (object.face(), object.figures());
    match (face, object.kind()) {
        (Some(face), _) => {
            tell(c"type", text(face.filter_type().name()));
            tell(c"layout", Value::Text(face.describe()));
            tell(c"hash", text(face.hash_spec().name()));
        }
        (None, Kind::RedisBloom) => tell(c"type", text("redisbloom")),
        (None, Kind::RedisCuckoo) => tell(c"type", text("redisbloom-cuckoo")),
        (None, Kind::Petal) => tell(c"type", text("cuckoo")),
    }
    tell(c"capacity", Value::Count(figures.capacity));
    // RedisBloom's cuckoo filters promise none.
    if figures.rate > 0.0 {
        tell(c"error-rate", Value::Number(figures.rate));
    }
    tell(c"items", Value::Count(figures.items));
    tell(c"memory", Value::Count(figures.size));
    tell(c"layers", Value::Count(figures.layers));
    if let Some(growth) = figures.expansion {
        tell(c"expansion", Value::Count(growth));
    }
    match object {
        Object::Window(filter) => {
            tell(c"generations", Value::Count(filter.generations().into()));
            tell(c"generation-capacity", Value::Count(filter.generation_capacity()));
            tell(c"fullest-generation", Value::Count(filter.fullest_generation()));
            match filter.window_ticks() {
                Some(time) => {
                    tell(c"window-ms", Value::Count(time));
                    tell(c"clock-ms", Value::Count(filter.now()));
                }
                None => tell(c"window-items", Value::Count(filter.planned_keys())),
            }
        }
        Object::Filter(filter) => match &**filter {
            AnyFilter::Scalable(filter) => {
                tell(c"layer-room", Value::Count(filter.layer_capacity_left()));
                if let Some(parts) = filter.growth_share() {
                    tell(c"growth-share", Value::Count(parts));
                }
            }
            AnyFilter::Bloom(_) if object.saturates() => tell(c"saturates", Value::Count(1)),
            AnyFilter::Counting(filter) => tell(c"most-counted", Value::Count(filter.most())),
            AnyFilter::CountingClassic(filter) => {
                tell(c"most-counted", Value::Count(filter.most()));
            }
            _ => {}
        },
        Object::Chain(_) | Object::Incoming(_) | Object::RedisBloom(_) | Object::RedisCuckoo(_) => {
        }
    }
    if let Some(face) = face.filter(|_| full) {
        tell(c"estimated-items", Value::Number(face.estimated_len()));
        // Each of these reads the whole filter, so none is computed twice.
        let rate = face.estimated_rate();
        let overfull = match face.filter_type() {
            FilterType::Wide => face.is_overfull(),
            _ => overfull(face.target_rate(), rate, face.size_bytes().saturating_mul(8)),
        };
        tell(c"estimated-error-rate", Value::Number(rate));
        tell(c"fill", Value::Number(face.fill_ratio()));
        tell(c"overfull", Value::Count(overfull.into()));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Form, Growth, Plan};

    /// A burst stays visible after its generation is no longer the newest.
    #[test]
    fn fullest_generation_of_a_window_is_told() {
        let form = Form::Window { milliseconds: Some(900), generations: 4 };
        let plan = Plan { form, rate: 0.01, keys: 300, seed: [0xab; 16] };
        let mut object = plan.make(u64::MAX).unwrap();
        let of = |object: &Object, name: &CStr| {
            let mut fields = fields(object, false).into_iter();
            fields.find_map(|(found, value)| (found == name).then_some(value))
        };
        assert_eq!(of(&object, c"generation-capacity"), Some(Value::Count(100)));
        for (now, keys, fullest) in [(0, 0..50u64, 50), (310, 50..200, 150), (650, 200..210, 150)] {
            object.advance(now);
            for key in keys {
                assert_eq!(object.insert(&key.to_le_bytes(), u64::MAX), Ok(true));
            }
            assert_eq!(of(&object, c"fullest-generation"), Some(Value::Count(fullest)), "{now}");
        }
    }

    #[test]
    fn no_field_comes_twice_and_none_is_secret() {
        let forms = [
            Form::Bloom { growth: None },
            Form::Bloom { growth: Some(Growth::by(2)) },
            Form::Counting,
            Form::Window { milliseconds: None, generations: 4 },
            Form::Window { milliseconds: Some(1000), generations: 4 },
            Form::Cuckoo { expansion: 1, bucket_size: 2, iterations: 20 },
        ];
        for form in forms {
            let plan = Plan { form, rate: 0.01, keys: 1000, seed: [0xab; 16] };
            let object = plan.make(u64::MAX).unwrap();
            let fields = fields(&object, true);
            let mut names: Vec<_> = fields.iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), fields.len(), "{form:?}");
            assert!(!format!("{fields:?}").contains("abab"), "{fields:?}");
        }
    }
}
