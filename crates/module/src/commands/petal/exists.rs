//! `PETAL.EXISTS`: membership that tells a missing key from a missing item.

use petal::Answers;

use super::{ITEMS, KEY, NOT_FOUND, PETAL};
use crate::about::{ASKED, About, key};
use crate::ffi::{Call, Command, Failure};
use crate::metrics;

pub(in crate::commands) struct Exists;

impl Command for Exists {
    const ABOUT: About = About {
        name: c"PETAL.EXISTS",
        summary: c"Which items may be in a filter of any type. A missing key is an error, where \
            BF.MEXISTS and CF.MEXISTS reply 0",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEMS],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let object = key.object().known()?.ok_or(NOT_FOUND)?;
        let mut found = Answers::new();
        match object.deleting() {
            Some(filter) => {
                filter.contains_all(&filter.hashes(&mut call.words_from(2)), &mut found);
            }
            None => object.contains_all(call.words_from(2), call, &mut found),
        }
        let count = call.len() - 2;
        metrics::queried(found.count_ones(), count as u64);
        call.array(count);
        (0..count).for_each(|at| call.boolean(found.get(at)));
        Ok(())
    }
}
