//! `CF.DEL`, `CF.MDEL` and `CF.COMPACT`.

use super::filter_mut;
use crate::bindings::command_spec::{Arg, CommandSpec, RW_ACCESS_DELETE, RW_INSERT, first_key};
use crate::bindings::{Call, Command, ReplyError, metrics};

pub(in crate::commands) struct Del;

impl Command for Del {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.DEL",
        summary:
            c"Deletes one copy of an item; returns whether it was (maybe) present. Delete only \
            items that were added: a false positive deletes another item",
        complexity: c"O(layers)",
        flags: c"write fast",
        keys: &[first_key(RW_ACCESS_DELETE)],
        args: &[Arg::KEY, Arg::ITEM],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let mut key = call.open_write(1);
        let filter = filter_mut(key.filter_mut())?.ok_or(ReplyError::Static("Not found"))?;
        let removed = filter.remove(filter.hash(call.arg(2)));
        if removed {
            metrics::deleted(1);
            call.replicate_verbatim();
            call.notify(c"cuckoo.del", 1);
        }
        call.boolean(removed);
        Ok(())
    }
}

pub(in crate::commands) struct Mdel;

impl Command for Mdel {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.MDEL",
        summary:
            c"Deletes one copy of each item; returns whether each was (maybe) present. Delete \
            only items that were added: a false positive deletes another item",
        complexity: c"O(items * layers)",
        flags: c"write fast",
        keys: &[first_key(RW_ACCESS_DELETE)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let mut key = call.open_write(1);
        let filter = filter_mut(key.filter_mut())?.ok_or(ReplyError::Static("Not found"))?;
        let hashes = filter.hashes(&mut call.args_from(2));
        let removed: Vec<bool> = hashes.into_iter().map(|hash| filter.remove(hash)).collect();
        let count = removed.iter().filter(|removed| **removed).count();
        if count > 0 {
            metrics::deleted(count as u64);
            call.replicate_verbatim();
            call.notify(c"cuckoo.del", 1);
        }
        call.booleans(removed.len(), |at| removed[at]);
        Ok(())
    }
}

pub(in crate::commands) struct Compact;

impl Command for Compact {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.COMPACT",
        summary: c"Moves items of newer layers to free slots of older ones, and frees empty layers",
        complexity: c"O(items)",
        flags: c"write",
        keys: &[first_key(RW_INSERT)],
        args: &[Arg::KEY],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let mut key = call.open_write(1);
        let not_found = ReplyError::Static("Cuckoo filter was not found");
        let filter = filter_mut(key.filter_mut())?.ok_or(not_found)?;
        if filter.compact() {
            call.replicate_verbatim();
        }
        call.ok();
        Ok(())
    }
}
