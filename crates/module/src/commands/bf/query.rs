//! `BF.EXISTS`, `BF.MEXISTS`, `BF.CARD` and `BF.INFO`.

use crate::bindings::command_spec::{Arg, CommandSpec, RO_ACCESS, first_key};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplyError, metrics};
use crate::commands::args::is_option;
use crate::commands::{bloom, query_all};

pub(in crate::commands) struct Exists;

impl Command for Exists {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.EXISTS",
        summary: c"Returns whether an item may be in a Bloom filter",
        complexity: c"O(layers), of which there are few",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::ITEM],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let found = match bloom(key.filter())? {
            Some(stored) => {
                let lookup = stored.start_lookup(call.arg(2));
                // Closing the key takes about as long as the memory access.
                drop(key);
                lookup.finish(call)
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
        name: c"BF.MEXISTS",
        summary: c"Returns which items may be in a Bloom filter",
        complexity: c"O(items)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        query_all(call, bloom(key.filter())?);
        Ok(())
    }
}

pub(in crate::commands) struct Card;

impl Command for Card {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.CARD",
        summary: c"Returns the number of items in a Bloom filter",
        complexity: c"O(1)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let items = bloom(call.open_read(1).filter())?.map_or(0, |stored| stored.info().items);
        call.count(items);
        Ok(())
    }
}

pub(in crate::commands) struct Info;

impl Command for Info {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.INFO",
        summary: c"Returns capacity, size, layers, items and expansion of a Bloom filter",
        complexity: c"O(1); with MAXSCALEDCAPACITY O(layers), up to 63 layers of up to 1 ms each",
        // Not `fast`: MAXSCALEDCAPACITY takes up to 32 ms.
        flags: c"readonly",
        keys: &[first_key(RO_ACCESS)],
        args: &[
            Arg::KEY,
            Arg::one_of(
                c"field",
                &[
                    Arg::flag(c"capacity", c"CAPACITY"),
                    Arg::flag(c"size", c"SIZE"),
                    Arg::flag(c"filters", c"FILTERS"),
                    Arg::flag(c"items", c"ITEMS"),
                    Arg::flag(c"expansion", c"EXPANSION"),
                    Arg::flag(c"error", c"ERROR"),
                    Arg::flag(c"tightening", c"TIGHTENING"),
                    Arg::flag(c"maxscaledcapacity", c"MAXSCALEDCAPACITY"),
                ],
            )
            .optional(),
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        if !(2..=3).contains(&call.len()) {
            return Err(ReplyError::WrongArity);
        }
        let key = call.open_read(1);
        let stored = bloom(key.filter())?.ok_or(ReplyError::NOT_FOUND)?;
        let info = stored.info();
        let fields = [
            ("CAPACITY", c"Capacity", Some(info.capacity)),
            ("SIZE", c"Size", Some(info.size)),
            ("FILTERS", c"Number of filters", Some(info.layers)),
            ("ITEMS", c"Number of items inserted", Some(info.items)),
            ("EXPANSION", c"Expansion rate", info.expansion),
        ];
        let count = |number: Option<u64>| number.map_or_else(|| call.null(), |n| call.count(n));
        if call.len() == 2 {
            call.map(fields.len());
            for (_, name, number) in fields {
                call.simple(name);
                count(number);
            }
            return Ok(());
        }
        let reply_name = |name| {
            if call.is_resp3() {
                call.map(1);
                call.simple(name);
            } else {
                call.array(1);
            }
        };
        let field = call.arg(2);
        if let Some((_, name, number)) =
            fields.into_iter().find(|(option, ..)| is_option(field, option))
        {
            reply_name(name);
            count(number);
        } else if is_option(field, "ERROR") {
            reply_name(c"Error rate");
            call.double(info.target_fpr);
        } else if is_option(field, "TIGHTENING") {
            reply_name(c"Tightening ratio");
            stored.tightening().map_or_else(|| call.null(), |ratio| call.double(ratio));
        } else if is_option(field, "MAXSCALEDCAPACITY") {
            reply_name(c"Max scaled capacity");
            call.count(stored.capacity_within(Settings::current().memory_limit));
        } else {
            return Err(ReplyError::Static("Invalid information value"));
        }
        Ok(())
    }
}
