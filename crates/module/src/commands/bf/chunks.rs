//! `BF.SCANDUMP` and `BF.LOADCHUNK`.

use super::{BLOOM, KEY};
use crate::about::{ASKED, About, Arg, ArgKind, PUT, key};
use crate::commands::words::integer;
use crate::commands::{bloom, limit, transfer};
use crate::compat;
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Loses};
use crate::object::{Object, Refusal};

pub(in crate::commands) struct ScanDump;

impl Command for ScanDump {
    const ABOUT: About = About {
        name: c"BF.SCANDUMP",
        summary: c"A Bloom filter in chunks, to be loaded elsewhere",
        complexity: c"O(bytes of a chunk)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer)],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let object = bloom(key.object())?.ok_or(Failure::Says("ERR not found"))?;
        let number =
            integer(call.word(2)).ok_or(Failure::Says("Second argument must be numeric"))?;
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        if transfer::scan_dump(call, object, number) {
            return Ok(());
        }
        let Object::RedisBloom(filter) = object else { return Err(Failure::WrongType) };
        transfer::reply_chunk(call, number, filter.header(), |at| filter.chunk(at));
        Ok(())
    }
}

pub(in crate::commands) struct LoadChunk;

impl Command for LoadChunk {
    const LOSES: Loses = Loses::Items;

    const ABOUT: About = About {
        name: c"BF.LOADCHUNK",
        summary: c"Loads a chunk of a Bloom filter; the first one creates it",
        complexity: c"O(bytes of the chunk)",
        since: c"0.1.0",
        arity: 4,
        flags: c"write deny-oom",
        keys: &[key(PUT)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer), Arg::new(c"data", ArgKind::Text)],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 4 {
            return Err(Failure::Arity);
        }
        let number =
            integer(call.word(2)).ok_or(Failure::Says("ERR Second argument must be numeric"))?;
        let number = u64::try_from(number).unwrap_or(0);
        if let Some(loaded) = transfer::load_chunk(call, number) {
            return loaded;
        }
        let mut key = call.write(1);
        match key.object_mut().known()? {
            None if number == 1 => {
                let limit = limit(call, Settings::now().memory_limit);
                let filter = compat::Bloom::from_header(call.word(3), limit);
                let filter = filter.map_err(|refusal| match refusal {
                    Refusal::Limit => Failure::Says(
                        "ERR received bad data: it announces a filter larger than the setting \
                         memory-limit",
                    ),
                    Refusal::Memory | Refusal::TooLarge => {
                        Failure::Says("ERR received bad data: no memory for what it announces")
                    }
                    refusal => refusal.into(),
                })?;
                key.set(filter.into())?;
            }
            Some(Object::RedisBloom(filter)) => {
                filter.put_chunk(number, call.word(3))?;
            }
            Some(_) => return Err(Failure::WrongType),
            None => return Err(Failure::Says("ERR not found")),
        }
        call.replicate_same();
        call.ok();
        Ok(())
    }
}
