//! What filters that delete are asked, and `CF.DEL` and `CF.COMPACT`.

use petal::Answers;

use super::{CUCKOO, ITEM, KEY, NOT_FOUND};
use crate::about::{ASKED, About, Arg, CHANGED, REMOVED, key};
use crate::ffi::{Call, Command, Failure};

pub(in crate::commands) struct Del;

impl Command for Del {
    const ABOUT: About = About {
        name: c"CF.DEL",
        summary: c"Deletes an item once. Only for items that were added: others may take one along",
        complexity: c"O(layers), of which there are few",
        since: c"0.1.0",
        arity: 3,
        flags: c"write fast",
        keys: &[key(REMOVED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let object = key.object_mut().cuckoo()?.ok_or(Failure::Says("Not found"))?;
        let removed = object.remove_copy(call.word(2))?;
        if removed {
            call.replicate_same();
            call.notify(c"cuckoo.del", 1);
        }
        call.boolean(removed);
        Ok(())
    }
}

pub(in crate::commands) struct Compact;

impl Command for Compact {
    const ABOUT: About = About {
        name: c"CF.COMPACT",
        summary: c"Moves items from the newest layers to older ones, and frees those it empties",
        complexity: c"O(items that are moved)",
        since: c"0.1.0",
        arity: 2,
        flags: c"write",
        keys: &[key(CHANGED)],
        args: &[KEY],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let missing = Failure::Says("Cuckoo filter was not found");
        key.object_mut().cuckoo()?.ok_or(missing)?.compact()?;
        call.replicate_same();
        call.ok();
        Ok(())
    }
}

pub(in crate::commands) struct Exists;

impl Command for Exists {
    const ABOUT: About = About {
        name: c"CF.EXISTS",
        summary: c"Whether an item may be in a filter that deletes",
        complexity: c"O(layers), of which there are few",
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
        let found = match key.object().cuckoo()? {
            Some(object) => object.contains(call.word(2), call),
            None => false,
        };
        call.boolean(found);
        Ok(())
    }
}

pub(in crate::commands) struct Mexists;

impl Command for Mexists {
    const ABOUT: About = About {
        name: c"CF.MEXISTS",
        summary: c"Which items may be in a filter that deletes",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, Arg::item().or_more()],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let mut found = Answers::new();
        let object = key.object().cuckoo()?;
        if let Some(object) = object {
            object.contains_all(call.words_from(2), call, &mut found);
        }
        call.array(call.len() - 2);
        (0..call.len() - 2).for_each(|at| call.boolean(object.is_some() && found.get(at)));
        Ok(())
    }
}

pub(in crate::commands) struct Count;

impl Command for Count {
    const ABOUT: About = About {
        name: c"CF.COUNT",
        summary: c"How often an item may be in a filter that deletes: never too low",
        complexity: c"O(layers), of which there are few",
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
        let copies = key.object().cuckoo()?.map(|object| object.copies(call.word(2)));
        call.count(copies.transpose()?.unwrap_or(0));
        Ok(())
    }
}

pub(in crate::commands) struct Info;

impl Command for Info {
    const ABOUT: About = About {
        name: c"CF.INFO",
        summary: c"What a filter that deletes is made for, and what it has become",
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
        let object = key.object().cuckoo()?.ok_or(NOT_FOUND)?;
        let figures = object.cuckoo().unwrap_or_default();
        let fields = [
            (c"Size", figures.size),
            (c"Number of buckets", figures.buckets),
            (c"Number of filters", figures.filters),
            (c"Number of items inserted", figures.items),
            (c"Number of items deleted", figures.deletes),
            (c"Bucket size", figures.bucket_size),
            (c"Expansion rate", figures.expansion),
            (c"Max iterations", figures.iterations),
        ];
        call.map(fields.len());
        for (name, number) in fields {
            call.simple(name);
            call.count(number);
        }
        Ok(())
    }
}
