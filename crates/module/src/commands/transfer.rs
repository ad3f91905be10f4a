//! Filters that come and go in pieces: `PETAL.IMPORT` and `PETAL.EXPORT` of `.petal` files,
//! `PETAL.LOADCHUNK`, and petal's own part of `SCANDUMP` and `LOADCHUNK`.
//!
//! While a filter comes, its key holds what has come so far and answers nothing: it is replicated,
//! saved and deleted as any other. With the last piece it is a filter, or, if anything is wrong
//! with it, nothing.

use std::borrow::Cow;

use petal::Image;

use super::limit;
use super::words::integer;
use crate::about::{ASKED, About, Arg, ArgKind, CHANGED, key};
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Loses, Word, incomplete};
use crate::object::{Object, Refusal};
use crate::parcel::{FRONT, Incoming, MARK};
use crate::persist::PIECE;

const KEY: Arg = Arg::key();
const OFFSET: Arg = Arg::new(c"offset", ArgKind::Integer);
const DATA: Arg = Arg::new(c"data", ArgKind::Text);
/// Where data begin in a file without metadata.
const DATA_AT: u64 = 4096;
/// The header of a file says how many ticks a window has, not how long one is.
const TIMED: Failure = Failure::Says(
    "ERR a window by time counts milliseconds here and seconds in files: make it here with PETAL.RESERVE, or move it by DUMP and RESTORE",
);

pub(super) struct Import;

impl Command for Import {
    const LOSES: Loses = Loses::Items;

    const ABOUT: About = About {
        name: c"PETAL.IMPORT",
        summary: c"Takes a .petal file in pieces, in their order; with the last one it is a filter",
        complexity: c"O(bytes)",
        since: c"0.1.0",
        arity: 4,
        flags: c"write deny-oom",
        keys: &[key(CHANGED)],
        args: &[KEY, OFFSET, DATA],
        categories: c"petal",
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 4 {
            return Err(Failure::Arity);
        }
        take(call, offset(call.word(2))?, Incoming::file)
    }
}

pub(super) struct LoadChunk;

impl Command for LoadChunk {
    const LOSES: Loses = Loses::Items;

    const ABOUT: About = About {
        name: c"PETAL.LOADCHUNK",
        summary: c"Takes a filter as append-only files hold it, in pieces, in their order",
        complexity: c"O(bytes)",
        since: c"0.1.0",
        arity: 4,
        flags: c"write deny-oom",
        keys: &[key(CHANGED)],
        args: &[KEY, OFFSET, DATA],
        categories: c"petal",
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 4 {
            return Err(Failure::Arity);
        }
        take(call, offset(call.word(2))?, Incoming::parcel)
    }
}

fn offset(word: &[u8]) -> Result<u64, Failure> {
    let offset = integer(word).and_then(|offset| u64::try_from(offset).ok());
    offset.ok_or(Failure::Says("ERR an offset is a whole number of bytes, from 0"))
}

/// Takes a piece; replies how many bytes have come, and of a file how many there will be.
fn take(call: &Call<'_>, offset: u64, begin: fn(u64) -> Incoming) -> Result<(), Failure> {
    let (came, total) = push(call, offset, call.word(3), begin)?;
    call.array(2);
    call.count(came);
    call.count(total);
    Ok(())
}

/// Puts a piece to what has come of the filter of a key. The first begins anew what was not
/// finished. How much has come now, and how much there will be if that is known.
fn push(
    call: &Call<'_>,
    offset: u64,
    data: &[u8],
    begin: fn(u64) -> Incoming,
) -> Result<(u64, u64), Failure> {
    if data.is_empty() {
        // Of a key for which nothing has come, an append-only file could tell nothing.
        return Err(Failure::Says("ERR a piece has at least one byte"));
    }
    let limit = limit(call, Settings::now().memory_limit);
    let mut key = call.write(1);
    let exists = Failure::Exists("ERR item exists: load under another name, then RENAME");
    match key.object().any()? {
        // A log that begins the filter again replaces it; a client deletes it first.
        Some(object) if object.damage().is_some() && (offset > 0 || !call.is_replayed()) => {
            return Err(incomplete(object));
        }
        Some(Object::Incoming(incoming)) if offset > 0 && incoming.came() != offset => {
            let came = incoming.came();
            return Err(Failure::Told(format!(
                "ERR {came} bytes have come: go on with offset {came}, or begin again with 0"
            )));
        }
        Some(Object::Incoming(_)) => {}
        Some(_) => return Err(exists),
        None if offset > 0 => {
            return Err(Failure::Says("ERR nothing has come yet: begin with offset 0"));
        }
        None => {}
    }
    if offset == 0 {
        let begun = Object::Incoming(Box::new(begin(limit)));
        match key.object_mut().any()? {
            // In its place, for a key that is set anew loses its time to live.
            Some(before) => *before = begun,
            None => key.set(begun)?,
        }
    }
    let Some(Object::Incoming(incoming)) = key.object_mut().any()? else { return Err(exists) };
    if incoming.is_file() != begin(0).is_file() {
        return Err(Failure::Says(
            "ERR another command has begun this: go on with that, or delete it",
        ));
    }
    let (pushed, is_file) = (incoming.push(data), incoming.is_file());
    let (came, total) = (incoming.came(), incoming.total());
    // What was begun before the server was started knows of no limit: it is looked at here too, with
    // room for what lies beside the data.
    let most = limit.saturating_add(DATA_AT);
    let done = match pushed.and_then(|content| content.map(Object::of).transpose()) {
        Ok(None) if incoming.memory_usage() > most => Err(Refusal::Limit.into()),
        Ok(Some(object)) if object.memory_usage() > most => Err(Refusal::Limit.into()),
        Ok(None) => Ok((came, total)),
        Ok(Some(object)) if is_file && object.has_clock() => Err(TIMED),
        Ok(Some(object)) => {
            // In the same place, for a key that is set anew loses its time to live.
            if let Some(held) = key.object_mut().any()? {
                *held = object;
            }
            call.notify(c"petal.import", 1);
            Ok((came, came))
        }
        Err(what) => Err(Failure::Told(format!("ERR received bad data: {what}"))),
    };
    if done.is_err() {
        // Nothing can come of it, here or on a replica.
        key.delete();
        call.replicate(c"DEL", &[Word::Same(1)]);
        call.notify(c"del", 1);
        return done;
    }
    call.replicate_same();
    done
}

pub(super) struct Export;

impl Command for Export {
    const ABOUT: About = About {
        name: c"PETAL.EXPORT",
        summary: c"A filter as a .petal file, in pieces: the next offset (0 at the end) and bytes",
        complexity:
            c"O(bytes); with an offset below 4096 one pass over the filter, 0.1 to 0.3 ms a MB",
        since: c"0.1.0",
        arity: -3,
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[KEY, OFFSET, Arg::new(c"count", ArgKind::Integer).after(c"COUNT")],
        categories: c"petal",
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        let most = match call.len() {
            3 => PIECE,
            5 if super::words::is(call.word(3), "COUNT") => {
                let count = integer(call.word(4)).and_then(|count| usize::try_from(count).ok());
                let range = Failure::Says("ERR COUNT is a number of bytes from 1 to 67108864");
                count.filter(|count| (1..=64 << 20).contains(count)).ok_or(range)?
            }
            _ => return Err(Failure::Arity),
        };
        let offset = offset(call.word(2))?;
        let key = call.read(1);
        let object = key.object().known()?.ok_or(Failure::Says("ERR not found"))?;
        if object.has_clock() {
            return Err(TIMED);
        }
        let image = object
            .image()
            .ok_or(Failure::Says("ERR this filter is not one file: PETAL.EXPORT is not for CF.*, nor for RedisBloom's layout"))?;
        let (piece, total) = file_piece(&image, offset, most);
        let next = offset + piece.len() as u64;
        call.array(2);
        call.count(if next < total { next } else { 0 });
        call.bytes(&piece);
        Ok(())
    }
}

/// Some bytes of the file of a filter, and how many it has.
fn file_piece<'i>(image: &'i Image<'_>, offset: u64, most: usize) -> (Cow<'i, [u8]>, u64) {
    let total = DATA_AT + image.data_len();
    if offset < DATA_AT {
        let mut front = image.header().to_vec();
        front.resize(DATA_AT as usize, 0);
        let rest = &front[offset as usize..];
        return (rest[..rest.len().min(most)].to_vec().into(), total);
    }
    (image.read(offset - DATA_AT, most).into(), total)
}

/// `SCANDUMP` of what is in petal's own layout: as RedisBloom's, a mark with number 1, then pieces
/// with numbers that tell how far they reach. `false` if it has another layout.
pub(super) fn scan_dump(call: &Call<'_>, object: &Object, number: u64) -> bool {
    let Some(parcel) = object.parcel() else { return false };
    let front = FRONT as u64;
    let (number, piece) = match number {
        0 => (1, parcel.read(0, FRONT)),
        number => {
            let at = (number - 1).saturating_add(front);
            let piece = parcel.read(at, PIECE);
            (if piece.is_empty() { 0 } else { number.saturating_add(piece.len() as u64) }, piece)
        }
    };
    call.array(2);
    call.count(number);
    if piece.is_empty() && object.deleting().is_some() {
        // `CF.SCANDUMP` ends with nothing, `BF.SCANDUMP` with no bytes.
        call.null();
    } else {
        call.bytes(&piece);
    }
    true
}

/// `SCANDUMP` as RedisBloom does it: a header with number 1, chunks with how far they reach.
pub(super) fn reply_chunk<'c>(
    call: &Call<'_>,
    number: u64,
    header: impl AsRef<[u8]>,
    chunk: impl Fn(u64) -> Option<(u64, &'c [u8])>,
) {
    call.array(2);
    if number == 0 {
        call.count(1);
        call.bytes(header.as_ref());
        return;
    }
    let (reached, bytes) = chunk(number).unwrap_or((0, &[]));
    call.count(reached);
    call.bytes(bytes);
}

/// `LOADCHUNK` of what is in petal's own layout. None if it is not.
pub(super) fn load_chunk(call: &Call<'_>, number: u64) -> Option<Result<(), Failure>> {
    let data = call.word(3);
    let begins = number == 1 && data.starts_with(&MARK);
    let going_on = || matches!(call.read(1).object().any(), Ok(Some(Object::Incoming(_))));
    if !begins && !going_on() {
        return None;
    }
    let reached = number.checked_sub(1).and_then(|number| number.checked_add(FRONT as u64));
    let before = reached.and_then(|reached| reached.checked_sub(data.len() as u64));
    let before = if begins { Some(0) } else { before };
    let pushed = match before {
        Some(offset) => push(call, offset, data, Incoming::parcel),
        None => Err(Failure::Says("ERR invalid offset - no link found")),
    };
    Some(pushed.map(|_| call.ok()))
}
