//! What a filter can be told and asked beside keys that are put in: removals, counts, and what it
//! has in common with others.

use petal::rate::Overlap;
use petal::{Answers, AnyFilter, BloomFilter, ClassicBloomFilter};

use super::{Object, Refusal, hashes};

impl Object {
    /// Takes keys out, each once; whether they were there.
    ///
    /// # Errors
    /// If its type does not delete.
    pub(crate) fn remove_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        removed: &mut Answers,
    ) -> Result<(), Refusal> {
        let Self::Filter(filter) = self else { return Err(Refusal::Type) };
        let hashes = hashes(filter.face().hash_spec(), keys);
        Ok(filter.face_mut()?.remove_mixed_hashes(&hashes, removed)?)
    }

    /// How often keys were put in and not taken out, at most.
    ///
    /// # Errors
    /// If its type does not count.
    pub(crate) fn counts<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<u64>, Refusal> {
        let Self::Filter(filter) = self else { return Err(Refusal::Type) };
        let hashes = hashes(filter.face().hash_spec(), keys);
        let count: &dyn Fn(u64) -> u64 = match &**filter {
            AnyFilter::Counting(filter) => &|hash| filter.count_mixed_hash(hash),
            AnyFilter::CountingClassic(filter) => &|hash| filter.count_mixed_hash(hash),
            AnyFilter::Quotient(filter) => &|hash| filter.count_mixed_hash(hash),
            _ => return Err(Refusal::Type),
        };
        Ok(hashes.into_iter().map(count).collect())
    }

    /// Makes this the filter of all keys that are in it or in any of the others, or leaves it as it
    /// is.
    ///
    /// # Errors
    /// If they are not compatible, or it would take more than so many bytes.
    pub(crate) fn unite(&mut self, others: &[&Self], limit: u64) -> Result<(), Refusal> {
        let Self::Filter(ours) = self else { return Err(Refusal::Type) };
        let mut theirs = Vec::with_capacity(others.len());
        for other in others {
            let Self::Filter(other) = other else { return Err(Refusal::Type) };
            ours.check_compatible(other)?;
            theirs.push(other);
        }
        let AnyFilter::Quotient(table) = &**ours else {
            // What is compatible fits.
            return Ok(theirs.into_iter().try_for_each(|theirs| ours.union(theirs))?);
        };
        // It is made anew, and may have to double until all can be in it.
        let all = theirs.iter().map(|theirs| theirs.face().inserted());
        let all = all.fold(table.len(), u64::saturating_add);
        let (mut room, mut bytes) = (table.shape().capacity(), table.memory_usage());
        while table.is_growing() && room < all {
            (room, bytes) = (room.saturating_mul(2), bytes.saturating_mul(2));
        }
        if bytes > limit {
            return Err(Refusal::Limit);
        }
        let mut united = ours.to_owned_filter()?;
        for theirs in theirs {
            united.union(theirs)?;
            if united.face().memory_usage() > limit {
                return Err(Refusal::Limit);
            }
        }
        **ours = united;
        Ok(())
    }

    /// How much two filters have in common.
    ///
    /// # Errors
    /// If they cannot be compared.
    pub(crate) fn compare(&self, other: &Self) -> Result<Overlap, Refusal> {
        match (self.bits(), other.bits()) {
            (Some(Bits::Blocked(ours)), Some(Bits::Blocked(theirs))) => Ok(ours.compare(theirs)?),
            (Some(Bits::Classic(ours)), Some(Bits::Classic(theirs))) => Ok(ours.compare(theirs)?),
            _ => Err(Refusal::Type),
        }
    }

    /// The Bloom filter that it is or has in it.
    fn bits(&self) -> Option<Bits<'_>> {
        let Self::Filter(filter) = self else { return None };
        Some(match &**filter {
            AnyFilter::Bloom(filter) => Bits::Blocked(filter),
            AnyFilter::Counting(filter) => Bits::Blocked(filter.as_filter()),
            AnyFilter::Classic(filter) => Bits::Classic(filter),
            AnyFilter::CountingClassic(filter) => Bits::Classic(filter.as_filter()),
            _ => return None,
        })
    }
}

enum Bits<'a> {
    Blocked(&'a BloomFilter),
    Classic(&'a ClassicBloomFilter),
}

#[cfg(test)]
mod tests {
    use petal::{HashSpec, QuotientFilter, WindowedBloomFilter};

    use super::*;
    use crate::object::Clock;
    use crate::plan::{Form, Growth, Plan};

    const ANY: u64 = u64::MAX;
    const SLOTS: u64 = 1024;
    const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];

    fn made(form: Form, seed: u8) -> Object {
        Plan { form, rate: 0.0001, keys: 1000, seed: [seed; 16] }.make(ANY).unwrap()
    }

    /// Room for less than twice as many keys.
    fn quotient(keys: std::ops::Range<u64>) -> Object {
        let hash = HashSpec::keyed([7; 16]);
        let builder = QuotientFilter::builder().slots(SLOTS).remainder_bits(20);
        let mut filter = builder.hash(hash).build().unwrap();
        keys.for_each(|key| _ = filter.insert(key.to_string().as_bytes()).unwrap());
        AnyFilter::Quotient(filter).into()
    }

    fn image(object: &Object) -> (Vec<u8>, Vec<u8>) {
        let image = object.image().unwrap();
        (image.header().to_vec(), image.read(0, usize::MAX).to_vec())
    }

    struct At(u64);

    impl Clock for At {
        fn now(&self) -> u64 {
            self.0
        }
    }

    /// Replicas are not told of what changes nothing.
    #[test]
    fn what_takes_nothing_again_stays_as_it_is() {
        let window = |milliseconds| Form::Window { milliseconds, generations: 3 };
        for (form, again) in [
            (Form::Bloom { growth: None }, false),
            (Form::Bloom { growth: Some(Growth::by(2)) }, false),
            (Form::Counting, true),
            (window(None), true),
            (window(Some(90)), true),
        ] {
            let mut object = made(form, 1);
            assert_eq!(object.takes_again(), again, "{form:?}");
            assert_eq!(object.has_clock(), form == window(Some(90)), "{form:?}");
            let first = object.insert_all(KEYS.into_iter(), ANY);
            assert_eq!((first.taken, first.new.count_ones()), (3, 3), "{form:?}");
            let before = image(&object);
            let second = object.insert_all(KEYS.into_iter(), ANY);
            assert_eq!((second.taken, second.new.count_ones()), (3, 0), "{form:?}");
            assert!(again || image(&object) == before, "{form:?}");
            assert_eq!(object.insert(b"a", ANY), Ok(false));
        }
    }

    /// The clock of a window moves from generation to generation, and answers as if always.
    #[test]
    fn clocks_move_when_it_matters() {
        for generations in [2, 3, 12] {
            let form = Form::Window { milliseconds: Some(100), generations };
            let mut ours = made(form, 1);
            let mut model = WindowedBloomFilter::builder().time(100).generations(generations);
            model = model.keys(1000).rate(0.0001).hash(HashSpec::keyed([1; 16]));
            let mut model = model.build().unwrap();
            let mut moves = 0;
            for step in 0..2000u64 {
                let (now, key) = (5000 + step * step / 900, (step % 37).to_string());
                moves += u64::from(ours.advance(now));
                model.advance_to(now);
                let new = ours.insert(key.as_bytes(), ANY).unwrap();
                assert_eq!(new, model.insert(key.as_bytes()), "{step}");
                let asked = (step * 7 % 40).to_string();
                let later = now + step % 150;
                assert_eq!(
                    ours.contains(asked.as_bytes(), &At(later)),
                    model.contains_at(later, asked.as_bytes()),
                    "{step}"
                );
            }
            assert!(moves < 1000 && !ours.advance(5) && ours.advance(u64::MAX));
        }
        let mut endless = made(Form::Window { milliseconds: Some(ANY), generations: 2 }, 1);
        assert!(!endless.advance(1 << 60) && endless.insert(b"a", ANY) == Ok(true));
        assert!(endless.contains(b"a", &At(1 << 62)));
    }

    #[test]
    fn only_what_counts_deletes() {
        let mut counting = made(Form::Counting, 1);
        counting.insert_all(KEYS.into_iter(), ANY);
        let mut removed = Answers::new();
        let out: [&[u8]; 3] = [b"a", b"a", b"x"];
        assert_eq!(counting.remove_all(out.into_iter(), &mut removed), Ok(()));
        assert_eq!(removed.iter().collect::<Vec<_>>(), [0]);
        assert_eq!(counting.counts(KEYS.into_iter()), Ok(vec![0, 1, 1]));
        let window = Form::Window { milliseconds: None, generations: 3 };
        for form in
            [Form::Bloom { growth: None }, Form::Bloom { growth: Some(Growth::by(2)) }, window]
        {
            let mut object = made(form, 1);
            assert_eq!(object.remove_all(KEYS.into_iter(), &mut removed), Err(Refusal::Type));
            assert_eq!(object.counts(KEYS.into_iter()), Err(Refusal::Type));
        }
    }

    #[test]
    fn filters_are_united_whole_or_not_at_all() {
        let mut ours = made(Form::Bloom { growth: None }, 1);
        let (theirs, stranger) = (ours.copy().unwrap(), made(Form::Bloom { growth: None }, 2));
        let before = image(&ours);
        assert!(matches!(ours.unite(&[&theirs, &stranger], ANY), Err(Refusal::Other(_))));
        assert_eq!(image(&ours), before);
        // Those of a table may not all fit: not even a part of them is taken.
        let mut ours = quotient(0..500);
        let (fits, many) = (quotient(500..600), quotient(600..1500));
        let before = image(&ours);
        assert_eq!(ours.unite(&[&fits, &many], ANY), Err(Refusal::Full));
        assert_eq!(ours.unite(&[&fits], 100), Err(Refusal::Limit));
        assert_eq!(image(&ours), before);
        assert_eq!(ours.unite(&[&fits], ANY), Ok(()));
        assert_eq!(ours.figures().items, 600);
        assert!(ours.unite(&[&made(Form::Counting, 1)], ANY).is_err());
    }

    /// A batch that does not fit tells how much of it was taken.
    #[test]
    fn a_full_table_takes_what_fits() {
        let mut table = quotient(0..500);
        let keys: Vec<String> = (500..2 * SLOTS).map(|key| key.to_string()).collect();
        let keys = keys.iter().map(|key| key.as_bytes());
        let inserted = table.insert_all(keys.clone(), ANY);
        assert_eq!(inserted.refused, Some(Refusal::Full));
        assert_eq!(table.figures().items, 500 + inserted.taken as u64);
        let mut again = quotient(0..500);
        assert_eq!(again.insert_all(keys.take(inserted.taken), ANY).refused, None);
        assert_eq!(image(&again), image(&table));
    }

    #[test]
    fn compared_by_their_bits() {
        let (mut ours, mut theirs) =
            (made(Form::Counting, 1), made(Form::Bloom { growth: None }, 1));
        ours.insert_all(KEYS.into_iter(), ANY);
        theirs.insert(b"a", ANY).unwrap();
        let overlap = ours.compare(&theirs).unwrap();
        assert!((overlap.intersection.value - 1.0).abs() < 0.1, "{overlap:?}");
        assert!((overlap.union.value - 3.0).abs() < 0.1, "{overlap:?}");
        let grows = made(Form::Bloom { growth: Some(Growth::by(2)) }, 1);
        assert_eq!(ours.compare(&grows), Err(Refusal::Type));
    }
}
