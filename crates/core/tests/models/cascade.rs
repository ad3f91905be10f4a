//! Cascades compared with their keys: results for the universe are exact.

use std::collections::BTreeSet;

use petal::{BatchResults, Borrowed, FilterCascade, HashSpec, Membership as _};

/// Builds a cascade of keys decoded from bytes, and queries it in every way, in memory and in files.
pub(crate) fn drive(bytes: &[u8]) {
    let Some((&[rate, keyed], rest)) = bytes.split_first_chunk::<2>() else { return };
    let rate = [0.5, 0.1, 0.01, 1e-3, 1e-6, 0.9][usize::from(rate) % 6];
    let hash =
        if keyed & 1 == 1 { HashSpec::keyed([keyed; 16]) } else { HashSpec::rapid(keyed.into()) };
    // Each pair of bytes is a key and a choice of list; few keys, so that some are named twice.
    let (mut members, mut others) = (Vec::new(), Vec::new());
    for pair in rest.chunks_exact(2) {
        let key = u64::from(u16::from_le_bytes([pair[0], pair[1]]));
        if key % 3 == 0 { members.push(key) } else { others.push(key) }
    }
    // Sometimes a key is in both lists.
    let contradicts = keyed & 6 == 6 && !members.is_empty();
    if contradicts {
        others.push(members[members.len() / 2]);
    }
    let built = FilterCascade::builder().fpr(rate).hash(hash).build(&members, &others);
    if contradicts {
        let error = built.expect_err("a contradiction");
        let expected = hash.hash(&members[members.len() / 2].to_le_bytes());
        assert_eq!(error.contradictions(), [expected]);
        return;
    }
    let cascade = built.expect("a cascade");
    let distinct = |keys: &[u64]| keys.iter().collect::<BTreeSet<_>>().len() as u64;
    assert_eq!(cascade.members(), distinct(&members));
    assert_eq!(cascade.non_members(), others.len() as u64);
    assert!(
        cascade.stats().estimated_fpr <= rate * (1.0 + 1e-9),
        "{}",
        cascade.stats().estimated_fpr
    );
    judge(&members, &others, |key| cascade.contains(key));
    let mut found = BatchResults::new();
    for (keys, answer) in [(&members, true), (&others, false)] {
        cascade.contains_batch(keys, &mut found);
        assert_eq!(found.len(), keys.len());
        assert!((0..keys.len()).all(|at| found.get(at) == answer));
    }
    // Other keys: batches return the results of single queries.
    let outside: Vec<u64> = (70_000..70_100).collect();
    cascade.contains_batch(&outside, &mut found);
    assert!(outside.iter().enumerate().all(|(at, key)| found.get(at) == cascade.contains(key)));

    let mut file = Vec::new();
    cascade.write_to(&mut file, "{}").expect("memory is writable");
    let (again, metadata) = FilterCascade::read_from(&file[..]).expect("just written");
    assert!(again == cascade && metadata == "{}");
    let mut buffer = vec![0; file.len() + 64];
    let start = buffer.as_ptr().align_offset(64);
    buffer[start..start + file.len()].copy_from_slice(&file);
    let borrowed = FilterCascade::<Borrowed<'_>>::from_bytes(&buffer[start..start + file.len()]);
    let borrowed = borrowed.expect("just written");
    judge(&members, &others, |key| borrowed.contains(key));
    assert_eq!(borrowed.size_bytes(), cascade.size_bytes());
    let mut same = Vec::new();
    borrowed.write_to(&mut same, "{}").expect("memory is writable");
    assert!(same == file, "not the same file again");
}

fn judge(members: &[u64], others: &[u64], contains: impl Fn(&u64) -> bool) {
    assert!(members.iter().all(&contains), "a member is absent");
    assert!(!others.iter().any(contains), "a non-member of the universe is present");
}
