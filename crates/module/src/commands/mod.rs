//! The commands. Each is a type with a description and a function that parses, does and replies.

mod bf;
mod transfer;
mod words;

use crate::ffi::{Call, Entry, Failure, Word};
use crate::object::Refusal;
use crate::plan::{Form, Plan};

/// All of them.
pub(crate) const ALL: &[Entry] = &[
    Entry::of::<bf::Reserve>(),
    Entry::of::<bf::Add>(),
    Entry::of::<bf::Madd>(),
    Entry::of::<bf::Insert>(),
    Entry::of::<bf::Exists>(),
    Entry::of::<bf::Mexists>(),
    Entry::of::<bf::Info>(),
    Entry::of::<bf::Card>(),
    Entry::of::<bf::ScanDump>(),
    Entry::of::<bf::LoadChunk>(),
    Entry::of::<transfer::Import>(),
    Entry::of::<transfer::Export>(),
    Entry::of::<transfer::LoadChunk>(),
];

/// Bytes that a command may make a filter take: what a master or an append-only file says has been
/// accepted before.
fn limit(call: &Call<'_>, limit: u64) -> u64 {
    if call.is_replayed() { u64::MAX } else { limit }
}

/// Tells replicas of a new filter all that they need to make the same.
fn replicate_creation(call: &Call<'_>, plan: &Plan) {
    let (rate, keys) = (plan.rate.to_string(), plan.keys.to_string());
    let seed: String = plan.seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut words: Vec<String> = vec![rate, keys, "TYPE".into()];
    let mut more = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    match plan.form {
        Form::Bloom { growth: Some(growth) } => {
            more(&["bloom", "EXPANSION", &growth.to_string()]);
        }
        Form::Bloom { growth: None } => more(&["bloom", "NONSCALING"]),
        Form::Counting => more(&["counting"]),
        Form::Window { milliseconds, generations } => {
            let generations = generations.to_string();
            match milliseconds {
                Some(time) => {
                    more(&["window", "WINDOW", &time.to_string(), "GENERATIONS", &generations]);
                }
                None => more(&["window", "GENERATIONS", &generations]),
            }
        }
    }
    more(&["SEED", &seed]);
    let words: Vec<_> = [Word::Same(1)]
        .into_iter()
        .chain(words.iter().map(|word| Word::Bytes(word.as_bytes())))
        .collect();
    call.replicate(c"PETAL.RESERVE", &words);
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Says("ERR non scaling filter is full"),
            Refusal::Limit => Self::Says("ERR operation exceeds bloom object memory limit"),
            Refusal::Memory => Self::Says("ERR Insufficient memory to create filter"),
            Refusal::Type => Self::WrongType,
            Refusal::Other(what) => Self::Told(format!("ERR {what}")),
        }
    }
}
