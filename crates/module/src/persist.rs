//! Objects into the server's files and back: fields of its RDB format, commands of its append-only
//! file, and what is compared when copies are.

use std::ffi::CStr;

use crate::object::{Kind, Object};

/// Fields that are written one after the other.
pub(crate) trait Save {
    /// A whole number.
    fn unsigned(&mut self, number: u64);
    /// A number.
    fn double(&mut self, number: f64);
    /// Bytes, and how many.
    fn bytes(&mut self, bytes: &[u8]);
}

/// Fields that are read one after the other; none if there are no more, or one of another type.
pub(crate) trait Load {
    /// A whole number.
    fn unsigned(&mut self) -> Option<u64>;
    /// A number.
    fn double(&mut self) -> Option<f64>;
    /// Bytes, as many as are there.
    fn bytes(&mut self) -> Option<Box<[u8]>>;
}

/// Writes an object.
pub(crate) fn save(object: &Object, out: &mut impl Save) {
    match object {
        Object::Filter(filter) => {
            let mut file = Vec::new();
            if filter.write_to(&mut file, "").is_ok() {
                out.bytes(&file);
            }
        }
    }
}

/// Reads an object, and looks at every byte of it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn load(kind: Kind, version: i32, input: &mut impl Load) -> Result<Object, String> {
    let _ = version;
    match kind {
        Kind::Petal => {
            let bytes = input.bytes().ok_or("cut short")?;
            let (filter, _) =
                petal::AnyFilter::read_from(&bytes[..]).map_err(|error| error.to_string())?;
            Ok(filter.into())
        }
        _ => Err("not yet".into()),
    }
}

/// The commands that make an object anew: command, position, bytes.
pub(crate) fn rewrite(object: &Object, mut emit: impl FnMut(&CStr, u64, &[u8])) {
    let _ = (object, &mut emit);
}

/// What two objects that answer alike, now and later, have in common.
pub(crate) fn digest(object: &Object, mut add: impl FnMut(&[u8])) {
    match object {
        Object::Filter(filter) => {
            let mut file = Vec::new();
            if filter.write_to(&mut file, "").is_ok() {
                add(&file);
            }
        }
    }
}
