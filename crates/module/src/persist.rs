//! Objects into the server's files and back: fields of its RDB format, commands of its append-only
//! file, and what is compared when copies are.
//!
//! What is in petal's own layout is a parcel, whole or what has come of one; the rest is as
//! RedisBloom writes it.

use std::ffi::CStr;

use crate::compat;
pub(crate) use crate::fields::{Load, Save};
use crate::object::{Kind, Object, Refusal};
use crate::parcel::Incoming;

/// Bytes of a field, or of a command that makes a part of an object.
pub(crate) const PIECE: usize = 1 << 20;
/// Bytes that an object may take beside what limits count.
const BESIDE: u64 = 4096;

// What the fields of petal's own are.
const PARCEL: u64 = 0;
const PART_OF_PARCEL: u64 = 1;
const PART_OF_FILE: u64 = 2;

/// Writes an object: of petal's own what the fields are, then bytes until a field has none.
pub(crate) fn save(object: &Object, out: &mut impl Save) {
    match object {
        Object::Incoming(incoming) => {
            out.unsigned(match incoming.damage() {
                Some(_) => PARCEL,
                None if incoming.is_file() => PART_OF_FILE,
                None => PART_OF_PARCEL,
            });
            for piece in incoming.received() {
                piece.chunks(PIECE).for_each(|piece| out.bytes(piece));
            }
            out.bytes(&[]);
        }
        Object::RedisBloom(filter) => filter.save(out),
        Object::RedisCuckoo(filter) => filter.save(out),
        object => {
            if let Some(parcel) = object.parcel() {
                out.unsigned(PARCEL);
                parcel.pieces(PIECE).for_each(|piece| out.bytes(&piece));
                out.bytes(&[]);
            }
        }
    }
}

/// Reads an object of at most so many bytes, and looks at every byte of it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn load(
    kind: Kind,
    version: i32,
    limit: u64,
    input: &mut impl Load,
) -> Result<Object, String> {
    let object = match (kind, version) {
        (Kind::Petal, 1) => load_petal(limit, input),
        (Kind::RedisBloom, version) => {
            compat::Bloom::load(version, input).map(Object::from).map_err(Refusal::told)
        }
        (Kind::RedisCuckoo, version) => {
            compat::Cuckoo::load(version, input).map(Object::from).map_err(Refusal::told)
        }
        (kind, version) => Err(format!("{kind:?} of version {version} is not known here")),
    }?;
    // A parcel has been held to the limit as it came.
    if kind != Kind::Petal && object.memory_usage() > limit.saturating_add(BESIDE) {
        return Err(format!("it takes {} bytes: more than the limit", object.memory_usage()));
    }
    Ok(object)
}

fn load_petal(limit: u64, input: &mut impl Load) -> Result<Object, String> {
    const CUT: &str = "it is cut short";
    let what = input.unsigned().ok_or(CUT)?;
    let mut incoming = match what {
        PARCEL | PART_OF_PARCEL => Incoming::parcel(limit),
        PART_OF_FILE => Incoming::file(limit),
        other => return Err(format!("type {other} of an object is not known here")),
    };
    let mut whole = None;
    loop {
        let piece = input.bytes().ok_or(CUT)?;
        if piece.is_empty() {
            break;
        }
        if whole.is_some() {
            return Err("it has more bytes than it should".to_owned());
        }
        whole = incoming.push(&piece)?;
    }
    match (what, whole) {
        (PARCEL, Some(content)) => Object::of(content),
        // Of nothing the append-only file could not tell.
        (PART_OF_PARCEL | PART_OF_FILE, None) if incoming.came() > 0 => {
            Ok(Object::Incoming(Box::new(incoming)))
        }
        _ => Err(CUT.to_owned()),
    }
}

/// The commands that make an object anew: command, position, bytes.
pub(crate) fn rewrite(object: &Object, mut emit_at: impl FnMut(&CStr, u64, &[u8])) {
    let mut offset = 0;
    let mut emit = |command: &CStr, piece: &[u8]| {
        emit_at(command, offset, piece);
        offset += piece.len() as u64;
    };
    match object {
        Object::Incoming(incoming) => {
            let command = if incoming.is_file() { c"PETAL.IMPORT" } else { c"PETAL.LOADCHUNK" };
            for piece in incoming.received() {
                piece.chunks(PIECE).for_each(|piece| emit(command, piece));
            }
        }
        Object::RedisBloom(filter) => {
            emit_chunks(&mut emit_at, c"BF.LOADCHUNK", &filter.header(), |at| filter.chunk(at));
        }
        Object::RedisCuckoo(filter) => {
            emit_chunks(&mut emit_at, c"CF.LOADCHUNK", &filter.header(), |at| filter.chunk(at));
        }
        object => {
            let parcel = object.parcel();
            let pieces = parcel.iter().flat_map(|parcel| parcel.pieces(PIECE));
            pieces.for_each(|piece| emit(c"PETAL.LOADCHUNK", &piece));
        }
    }
}

/// RedisBloom's chunks: its header with number 1, the others with how far they reach.
fn emit_chunks<'c>(
    emit: &mut impl FnMut(&CStr, u64, &[u8]),
    command: &CStr,
    header: &[u8],
    chunk: impl Fn(u64) -> Option<(u64, &'c [u8])>,
) {
    emit(command, 1, header);
    let mut position = 1;
    while let Some((reached, bytes)) = chunk(position) {
        emit(command, reached, bytes);
        position = reached;
    }
}

/// What two objects that answer alike, now and later, have in common.
pub(crate) fn digest(object: &Object, add: impl FnMut(&[u8])) {
    struct Digest<F>(F);
    impl<F: FnMut(&[u8])> Save for Digest<F> {
        fn unsigned(&mut self, number: u64) {
            self.0(&number.to_le_bytes());
        }
        fn double(&mut self, number: f64) {
            self.0(&number.to_le_bytes());
        }
        fn bytes(&mut self, bytes: &[u8]) {
            self.0(bytes);
        }
    }
    save(object, &mut Digest(add));
}
