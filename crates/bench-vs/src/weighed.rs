//! The memory of somebody else's filter, by the allocator's account: what was asked for while it was made, emptied and
//! filled, less what was given back.
//!
//! No rival needs to be believed about its size, and of those that grow few tell it. Cost: two reads of a counter around
//! a call on many keys.

use petal_bench::contest::Contestant;
use petal_bench::contest::keys::Keys;
use petal_bench::contest::subject::Subject;

/// Tells how many bytes of the whole program are in use.
pub type Meter = fn() -> usize;

/// A contestant that is made with a meter running, and weighed from then on. What the harness itself keeps of it, some
/// hundred bytes, is weighed too.
///
/// # Errors
/// If it cannot be made.
pub fn weighed(
    meter: Meter,
    make: impl FnOnce() -> Result<Contestant, String>,
) -> Result<Contestant, String> {
    let before = meter();
    let made = make()?;
    let bytes = meter() as i64 - before as i64;
    let subject = Box::new(Weighed { subject: made.subject, meter, bytes });
    Ok(Contestant { subject, ..made })
}

struct Weighed {
    subject: Box<dyn Subject>,
    meter: Meter,
    bytes: i64,
}

impl Weighed {
    fn weigh<T>(&mut self, act: impl FnOnce(&mut dyn Subject) -> T) -> T {
        let before = (self.meter)() as i64;
        let done = act(&mut *self.subject);
        self.bytes += (self.meter)() as i64 - before;
        done
    }
}

impl Subject for Weighed {
    fn clear(&mut self) {
        self.weigh(|subject| subject.clear());
    }

    fn insert(&mut self, keys: &Keys) {
        self.weigh(|subject| subject.insert(keys));
    }

    fn remove(&mut self, keys: &Keys) -> u64 {
        self.weigh(|subject| subject.remove(keys))
    }

    fn ask(&mut self, keys: &Keys) {
        self.subject.ask(keys);
    }

    fn yes(&self) -> u64 {
        self.subject.yes()
    }

    fn judge(&mut self, keys: &Keys) -> Option<u64> {
        self.subject.judge(keys)
    }

    fn foretold(&self) -> Option<f64> {
        self.subject.foretold()
    }

    fn bytes(&self) -> Option<u64> {
        u64::try_from(self.bytes).ok()
    }
}
