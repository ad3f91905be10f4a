//! What filters of `CF.*` are asked.

use petal::Answers;

use super::{CUCKOO, ITEM, ITEMS, KEY, filter};
use crate::about::{ASKED, About, key};
use crate::ffi::{Call, Command, Failure};
use crate::metrics;

pub(in crate::commands) struct Exists;

impl Command for Exists {
    const ABOUT: About = About {
        name: c"CF.EXISTS",
        summary: c"Whether an item may be in a filter",
        complexity: c"O(layers)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let found = match filter(key.object())? {
            Some(filter) => {
                let hash = filter.hash(call.word(2));
                filter.prefetch(hash);
                // Closing takes as long as fetching a line.
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
    const ABOUT: About = About {
        name: c"CF.MEXISTS",
        summary: c"Which items may be in a filter",
        complexity: c"O(items * layers)",
        since: c"0.1.0",
        arity: -3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEMS],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let count = call.len() - 2;
        let mut found = Answers::new();
        match filter(key.object())? {
            Some(filter) => {
                let hashes = filter.hashes(&mut call.words_from(2));
                filter.contains_all(&hashes, &mut found);
            }
            None => found.answer(count, |_| false),
        }
        metrics::queried(found.count_ones(), count as u64);
        call.array(count);
        (0..count).for_each(|at| call.boolean(found.get(at)));
        Ok(())
    }
}

pub(in crate::commands) struct Count;

impl Command for Count {
    const ABOUT: About = About {
        name: c"CF.COUNT",
        summary: c"How often an item was added to a filter and not deleted, at most",
        complexity: c"O(layers)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let filter = filter(key.object())?;
        call.count(filter.map_or(0, |filter| filter.count(filter.hash(call.word(2)))));
        Ok(())
    }
}

pub(in crate::commands) struct Info;

impl Command for Info {
    const ABOUT: About = About {
        name: c"CF.INFO",
        summary: c"What a filter is made for, and what it has become",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: 2,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let filter = filter(key.object())?.ok_or(Failure::Says("ERR not found"))?;
        let figures = filter.figures();
        let fields = [
            (c"Size", figures.size),
            (c"Number of buckets", figures.buckets),
            (c"Number of filters", figures.layers),
            (c"Number of items inserted", figures.items),
            (c"Number of items deleted", figures.deleted),
            (c"Bucket size", figures.bucket_size.into()),
            (c"Expansion rate", figures.expansion.into()),
            (c"Max iterations", figures.iterations.into()),
        ];
        call.map(fields.len());
        for (name, number) in fields {
            call.simple(name);
            call.count(number);
        }
        Ok(())
    }
}
