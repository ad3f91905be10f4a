//! `CF.MDEL`: deletion of several items.

use super::{CUCKOO, ITEMS, KEY, filter_mut};
use crate::about::{About, REMOVED, key};
use crate::ffi::{Call, Command, Failure};
use crate::metrics;

pub(in crate::commands) struct Mdel;

impl Command for Mdel {
    const ABOUT: About = About {
        name: c"CF.MDEL",
        summary: c"Deletes items from a filter, each once; whether each was (maybe) there. Delete \
            only what was added: a false positive deletes another item",
        complexity: c"O(items * layers)",
        since: c"0.1.0",
        arity: -3,
        flags: c"write fast",
        keys: &[key(REMOVED)],
        args: &[KEY, ITEMS],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let filter = filter_mut(key.object_mut())?.ok_or(Failure::Says("Not found"))?;
        let hashes = filter.hashes(&mut call.words_from(2));
        let removed: Vec<bool> = hashes.into_iter().map(|hash| filter.remove(hash)).collect();
        let count = removed.iter().filter(|removed| **removed).count();
        if count > 0 {
            metrics::deleted(count as u64);
            call.replicate_same();
            call.notify(c"cuckoo.del", 1);
        }
        call.array(removed.len());
        removed.into_iter().for_each(|removed| call.boolean(removed));
        Ok(())
    }
}
