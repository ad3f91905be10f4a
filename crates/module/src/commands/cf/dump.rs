//! `CF.SCANDUMP` and `CF.LOADCHUNK`.

use super::{CUCKOO, EXISTS, KEY, NOT_FOUND};
use crate::about::{ASKED, About, Arg, ArgKind, PUT, key};
use crate::commands::words::integer;
use crate::commands::{limit, transfer};
use crate::compat::Cuckoo;
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure};
use crate::object::{Object, Refusal};

const INVALID: Failure = Failure::Says("Invalid position");

pub(in crate::commands) struct ScanDump;

impl Command for ScanDump {
    const ABOUT: About = About {
        name: c"CF.SCANDUMP",
        summary: c"A filter that deletes in chunks, to be loaded elsewhere",
        complexity: c"O(bytes of a chunk)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer)],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let number = integer(call.word(2)).and_then(|number| u64::try_from(number).ok());
        let number = number.ok_or(INVALID)?;
        let key = call.read(1);
        let object = key.object().cuckoo()?.ok_or(NOT_FOUND)?;
        if transfer::scan_dump(call, object, number) {
            return Ok(());
        }
        let Object::RedisCuckoo(filter) = object else { return Err(Failure::WrongType) };
        call.array(2);
        match (number, filter.chunk(number)) {
            (0, _) if filter.len() > 0 => {
                call.integer(1);
                call.bytes(&filter.header());
            }
            (1.., Some((next, chunk))) => {
                call.count(next);
                call.bytes(chunk);
            }
            // RedisBloom tells nothing of an empty filter.
            _ => {
                call.integer(0);
                call.null();
            }
        }
        Ok(())
    }
}

pub(in crate::commands) struct LoadChunk;

impl Command for LoadChunk {
    const ABOUT: About = About {
        name: c"CF.LOADCHUNK",
        summary: c"Loads a chunk of a filter that deletes; the first one creates it",
        complexity: c"O(bytes of the chunk)",
        since: c"0.1.0",
        arity: 4,
        flags: c"write deny-oom",
        keys: &[key(PUT)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer), Arg::new(c"data", ArgKind::Text)],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 4 {
            return Err(Failure::Arity);
        }
        let number = integer(call.word(2)).filter(|number| *number != 0).ok_or(INVALID)?;
        let number = u64::try_from(number).unwrap_or(0);
        if let Some(loaded) = transfer::load_chunk(call, number) {
            return loaded;
        }
        let data = call.word(3);
        let mut key = call.write(1);
        let unloaded = Failure::Says("Couldn't load chunk!");
        match key.object_mut().cuckoo()? {
            None if number == 1 => {
                let limit = limit(call, Settings::now().memory_limit);
                let filter =
                    Cuckoo::from_header(data, limit).ok_or(Failure::Says("Invalid header"))?;
                let filter = filter.map_err(|refusal| match refusal {
                    Refusal::Limit => refusal.into(),
                    _ => Failure::Says("Couldn't create filter!"),
                })?;
                key.set(Object::RedisCuckoo(Box::new(filter)))?;
            }
            None => return Err(NOT_FOUND),
            Some(_) if number == 1 => return Err(EXISTS),
            Some(Object::RedisCuckoo(filter)) => {
                filter.put_chunk(number, data).map_err(|_| unloaded)?;
            }
            Some(_) => return Err(unloaded),
        }
        call.replicate_same();
        call.notify(c"cuckoo.loadchunk", 1);
        call.ok();
        Ok(())
    }
}
