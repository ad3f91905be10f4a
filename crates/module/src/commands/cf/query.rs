//! `CF.EXISTS`, `CF.MEXISTS`, `CF.COUNT` and `CF.INFO`.

use super::filter;
use crate::bindings::command_spec::{Arg, CommandSpec, RO_ACCESS, first_key};
use crate::bindings::{Call, Command, ReplyError, metrics};
use crate::commands::query_all;

pub(in crate::commands) struct Exists;

impl Command for Exists {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.EXISTS",
        summary: c"Returns whether an item may be in a cuckoo filter",
        complexity: c"O(layers)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::ITEM],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let found = match filter(key.filter())? {
            Some(filter) => {
                let hash = filter.hash(call.arg(2));
                filter.prefetch(hash);
                // Closing the key takes about as long as the memory access.
                drop(key);
                filter.contains(hash)
            }
            None => false,
        };
        metrics::queried(found.into(), 1);
        call.boolean(found);
        Ok(())
    }
}

pub(in crate::commands) struct Mexists;

impl Command for Mexists {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.MEXISTS",
        summary: c"Returns which items may be in a cuckoo filter",
        complexity: c"O(items * layers)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        filter(key.filter())?;
        query_all(call, key.filter().complete()?);
        Ok(())
    }
}

pub(in crate::commands) struct Count;

impl Command for Count {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.COUNT",
        summary: c"Returns the number of copies of an item in a cuckoo filter; an upper bound",
        complexity: c"O(layers)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::ITEM],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let filter = filter(key.filter())?;
        call.count(filter.map_or(0, |filter| filter.count(filter.hash(call.arg(2)))));
        Ok(())
    }
}

pub(in crate::commands) struct Info;

impl Command for Info {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.INFO",
        summary: c"Returns size, buckets, layers, items and parameters of a cuckoo filter",
        complexity: c"O(1)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let filter = filter(key.filter())?.ok_or(ReplyError::NOT_FOUND)?;
        let info = filter.info();
        let fields = [
            (c"Size", info.size),
            (c"Number of buckets", info.buckets),
            (c"Number of filters", info.layers),
            (c"Number of items inserted", info.items),
            (c"Number of items deleted", info.deleted),
            (c"Bucket size", info.bucket_size.into()),
            (c"Expansion rate", info.expansion.into()),
            (c"Max iterations", info.iterations.into()),
        ];
        call.map(fields.len());
        for (name, number) in fields {
            call.simple(name);
            call.count(number);
        }
        Ok(())
    }
}
