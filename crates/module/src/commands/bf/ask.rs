//! `BF.EXISTS`, `BF.MEXISTS`, `BF.CARD` and `BF.INFO`.

use petal::Answers;

use super::{BLOOM, ITEM, ITEMS, KEY};
use crate::about::{ASKED, About, Arg, key};
use crate::commands::bloom;
use crate::commands::words::is;
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure};
use crate::metrics;

pub(in crate::commands) struct Exists;

impl Command for Exists {
    const ABOUT: About = About {
        name: c"BF.EXISTS",
        summary: c"Whether an item may be in a Bloom filter",
        complexity: c"O(layers), of which there are few",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEM],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let found = match bloom(key.object())? {
            Some(object) => {
                let asked = object.ask(call.word(2));
                // Closing takes as long as fetching a line.
                drop(key);
                asked.found(call)
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
        name: c"BF.MEXISTS",
        summary: c"Which items may be in a Bloom filter",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEMS],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let mut found = Answers::new();
        let there = match bloom(key.object())? {
            Some(object) => {
                object.contains_all(call.words_from(2), call, &mut found);
                true
            }
            None => false,
        };
        let yes = if there { found.count_ones() } else { 0 };
        metrics::queried(yes, (call.len() - 2) as u64);
        call.array(call.len() - 2);
        (0..call.len() - 2).for_each(|at| call.boolean(there && found.get(at)));
        Ok(())
    }
}

pub(in crate::commands) struct Card;

impl Command for Card {
    const ABOUT: About = About {
        name: c"BF.CARD",
        summary: c"How many items were added to a Bloom filter that were new to it",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: 2,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let items = bloom(call.read(1).object())?.map_or(0, |object| object.figures().items);
        call.count(items);
        Ok(())
    }
}

pub(in crate::commands) struct Info;

impl Command for Info {
    const ABOUT: About = About {
        name: c"BF.INFO",
        summary: c"What a Bloom filter is made for, and what it has become",
        complexity: c"O(1); MAXSCALEDCAPACITY plans up to 63 layers, of up to 1 ms each",
        since: c"0.1.0",
        arity: -2,
        // Not fast: MAXSCALEDCAPACITY takes up to 32 ms.
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[
            KEY,
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
            .or_nothing(),
        ],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if !(2..=3).contains(&call.len()) {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let object = bloom(key.object())?.ok_or(Failure::Says("ERR not found"))?;
        let figures = object.figures();
        let fields = [
            ("CAPACITY", c"Capacity", Some(figures.capacity)),
            ("SIZE", c"Size", Some(figures.size)),
            ("FILTERS", c"Number of filters", Some(figures.layers)),
            ("ITEMS", c"Number of items inserted", Some(figures.items)),
            ("EXPANSION", c"Expansion rate", figures.expansion),
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
        let begin = |name| {
            if call.is_resp3() {
                call.map(1);
                call.simple(name);
            } else {
                call.array(1);
            }
        };
        let word = call.word(2);
        if let Some((_, name, number)) = fields.into_iter().find(|(option, ..)| is(word, option)) {
            begin(name);
            count(number);
        } else if is(word, "ERROR") {
            begin(c"Error rate");
            call.double(figures.rate);
        } else if is(word, "TIGHTENING") {
            begin(c"Tightening ratio");
            object.tightening().map_or_else(|| call.null(), |ratio| call.double(ratio));
        } else if is(word, "MAXSCALEDCAPACITY") {
            begin(c"Max scaled capacity");
            call.count(object.capacity_within(Settings::now().memory_limit));
        } else {
            return Err(Failure::Says("Invalid information value"));
        }
        Ok(())
    }
}
