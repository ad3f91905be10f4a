//! `PETAL.DEL` and `PETAL.COUNT`: filters with counters.

use petal::Answers;

use super::{ITEMS, KEY, PETAL};
use crate::about::{ASKED, About, REMOVED, key};
use crate::ffi::{Call, Command, Failure};
use crate::metrics;
use crate::object::Refusal;

pub(in crate::commands) struct Del;

impl Command for Del {
    const ABOUT: About = About {
        name: c"PETAL.DEL",
        summary: c"Deletes items from a counting filter, each once; whether each was (maybe) \
            there. Delete only what was added: a false positive takes others with it",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"write fast",
        keys: &[key(REMOVED)],
        args: &[KEY, ITEMS],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let mut removed = Answers::new();
        let there = match key.object_mut().known()? {
            Some(object) if object.deleting().is_some() => {
                return Err(Failure::Says("ERR this filter is for CF.*: use CF.DEL"));
            }
            Some(object) => {
                let taken_out = object.remove_all(call.words_from(2), &mut removed);
                taken_out.map_err(|refusal| match refusal {
                    Refusal::Type => Failure::Says(
                        "ERR this filter deletes nothing: reserve one of TYPE counting, or use \
                         CF.*",
                    ),
                    refusal => refusal.into(),
                })?;
                true
            }
            None => false,
        };
        if there && removed.count_ones() > 0 {
            metrics::deleted(removed.count_ones());
            call.replicate_same();
            call.notify(c"petal.del", 1);
        }
        call.array(call.len() - 2);
        (0..call.len() - 2).for_each(|at| call.boolean(there && removed.get(at)));
        Ok(())
    }
}

pub(in crate::commands) struct Count;

impl Command for Count {
    const ABOUT: About = About {
        name: c"PETAL.COUNT",
        summary: c"How often items were added to a counting filter and not deleted, at most; \
            counts end at 8",
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
        let counts = match key.object().known()? {
            Some(object) if object.deleting().is_some() => {
                return Err(Failure::Says("ERR this filter is for CF.*: use CF.COUNT"));
            }
            Some(object) => object.counts(call.words_from(2)).map_err(|refusal| match refusal {
                Refusal::Type => {
                    Failure::Says("ERR this filter counts nothing: reserve one of TYPE counting")
                }
                refusal => refusal.into(),
            })?,
            None => vec![0; call.len() - 2],
        };
        call.array(counts.len());
        counts.into_iter().for_each(|count| call.count(count));
        Ok(())
    }
}
