//! `CF.SCANDUMP` and `CF.LOADCHUNK`.

use super::{CUCKOO, KEY, filter};
use crate::about::{ASKED, About, Arg, ArgKind, PUT, key};
use crate::commands::words::integer;
use crate::commands::{limit, transfer};
use crate::compat::{Cuckoo, MOST_ANNOUNCED};
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Loses};
use crate::object::{Object, Refusal};

const POSITION: Arg = Arg::new(c"iterator", ArgKind::Integer);
const BAD_POSITION: Failure = Failure::Says("Invalid position");
const NOT_FOUND: Failure = Failure::Says("ERR not found");

pub(in crate::commands) struct ScanDump;

impl Command for ScanDump {
    const ABOUT: About = About {
        name: c"CF.SCANDUMP",
        summary: c"A filter in chunks, to be loaded elsewhere",
        complexity: c"O(bytes of a chunk)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[KEY, POSITION],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let position = integer(call.word(2)).and_then(|number| u64::try_from(number).ok());
        let position = position.ok_or(BAD_POSITION)?;
        let key = call.read(1);
        filter(key.object())?.ok_or(NOT_FOUND)?;
        let object = key.object().known()?.ok_or(NOT_FOUND)?;
        if transfer::scan_dump(call, object, position) {
            return Ok(());
        }
        let Object::RedisCuckoo(filter) = object else { return Err(Failure::WrongType) };
        call.array(2);
        if position == 0 && filter.len() > 0 {
            call.integer(1);
            call.bytes(&filter.header());
        } else if let Some((next, chunk)) = filter.chunk(position) {
            call.count(next);
            call.bytes(chunk);
        } else {
            // Nor is there a header of what is empty.
            call.integer(0);
            call.null();
        }
        Ok(())
    }
}

pub(in crate::commands) struct LoadChunk;

impl Command for LoadChunk {
    const LOSES: Loses = Loses::Items;

    const ABOUT: About = About {
        name: c"CF.LOADCHUNK",
        summary: c"Loads a chunk of a filter; the first one creates it",
        complexity: c"O(bytes of the chunk)",
        since: c"0.1.0",
        arity: 4,
        flags: c"write deny-oom",
        keys: &[key(PUT)],
        args: &[KEY, POSITION, Arg::new(c"data", ArgKind::Text)],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 4 {
            return Err(Failure::Arity);
        }
        let position = integer(call.word(2)).filter(|position| *position != 0);
        // Before the first there is nothing, as there is far behind the last.
        let position = u64::try_from(position.ok_or(BAD_POSITION)?).unwrap_or(u64::MAX);
        if let Some(loaded) = transfer::load_chunk(call, position) {
            return loaded;
        }
        let mut key = call.write(1);
        let exists = filter(key.object())?.is_some();
        if position == 1 {
            if exists {
                return Err(Failure::Exists("ERR item exists"));
            }
            let announced = Cuckoo::announced_layers(call.word(3));
            if announced.is_some_and(|layers| layers > MOST_ANNOUNCED) && !call.is_replayed() {
                return Err(Failure::Says("Couldn't create filter!"));
            }
            let most = limit(call, Settings::now().memory_limit);
            let made = Cuckoo::from_header(call.word(3), most);
            let made =
                made.ok_or(Failure::Says("Invalid header"))?.map_err(|refusal| match refusal {
                    Refusal::Limit => Failure::Says(
                        "Couldn't create filter! It would take more than the setting memory-limit",
                    ),
                    Refusal::Malformed(_)
                    | Refusal::Memory
                    | Refusal::TooLarge
                    | Refusal::LargeLayer => Failure::Says("Couldn't create filter!"),
                    refusal => refusal.into(),
                })?;
            key.set(Object::RedisCuckoo(Box::new(made)))?;
        } else {
            match key.object_mut().known()? {
                None => return Err(NOT_FOUND),
                Some(Object::RedisCuckoo(filter)) => filter
                    .put_chunk(position, call.word(3))
                    .map_err(|_| Failure::Says("Couldn't load chunk!"))?,
                Some(_) => return Err(Failure::Exists("Couldn't load chunk!")),
            }
        }
        call.replicate_same();
        call.notify(c"cuckoo.loadchunk", 1);
        call.ok();
        Ok(())
    }
}
