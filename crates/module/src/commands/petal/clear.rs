//! `PETAL.CLEAR`: removes all items and keeps the filter.

use super::{KEY, NOT_FOUND, PETAL};
use crate::about::{About, PUT, key};
use crate::ffi::{Call, Command, Failure};
use crate::object::Refusal;

pub(in crate::commands) struct Clear;

impl Command for Clear {
    const ABOUT: About = About {
        name: c"PETAL.CLEAR",
        summary: c"Removes all items from a filter. Its type, capacity, rate, seed and time to \
            live stay; layers after the first are freed",
        complexity: c"O(bytes of the first layer)",
        since: c"0.1.0",
        arity: 2,
        flags: c"write",
        keys: &[key(PUT)],
        args: &[KEY],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let object = key.object_mut().known()?.ok_or(NOT_FOUND)?;
        object.clear().map_err(|refusal| match refusal {
            Refusal::Type => Failure::Says(
                "ERR a filter that is built once from all its items cannot be cleared: delete the \
                 key",
            ),
            refusal => refusal.into(),
        })?;
        call.replicate_same();
        call.notify(c"petal.clear", 1);
        call.ok();
        Ok(())
    }
}
