//! Implementations of traits of the standard library.

use petal::{
    AnyFilter, AtomicBloomFilter, BloomFilter, CountingBloomFilter, Error, FilterCascade,
    FilterType, Membership as _, QuotientFilter, ScalableBloomFilter, StaticFilter,
    TypedBloomFilter, VectorQuotientFilter, WindowedBloomFilter,
};

#[test]
fn filters_can_be_sent_to_and_shared_by_threads() {
    fn check<F: Send + Sync>() {}
    check::<AnyFilter>();
    check::<AtomicBloomFilter>();
    check::<TypedBloomFilter<std::rc::Rc<str>>>();
    check::<AnyFilter<petal::Mapped>>();
    check::<Error>();
}

/// A filter is copied from its bytes, and saved and opened by the path of a file.
#[test]
fn filters_are_copied_from_bytes_and_files() {
    let mut bloom = BloomFilter::with_fpr(1000, 0.01).unwrap();
    bloom.extend(["one", "two"]);
    let bytes = bloom.to_bytes().unwrap();
    assert!(BloomFilter::try_from(&bytes[..]).unwrap() == bloom);
    assert!(AnyFilter::try_from(&bytes[..]).unwrap() == AnyFilter::from(bloom.clone()));
    assert!(QuotientFilter::try_from(&bytes[..]).is_err());
    assert!(BloomFilter::try_from(&bytes[1..]).unwrap_err().is_foreign());

    let dir = std::env::temp_dir().join(format!("petal-std-traits-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let path = dir.join("saved.petal");
    bloom.save(&path).unwrap();
    bloom.insert("three");
    bloom.save(&path).unwrap();
    assert!(BloomFilter::open(&path).unwrap() == bloom);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    assert!(bloom.save(dir.join("missing").join("file")).unwrap_err().is_io());
    std::fs::remove_dir_all(&dir).unwrap();
    let error: std::io::Error = BloomFilter::open(&path).unwrap_err().into();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn threads_save_whole_files_of_one_name() {
    let dir = std::env::temp_dir().join(format!("petal-save-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let path = dir.join("saved.petal");
    // A file of someone else.
    std::fs::write(dir.join("saved.petal.part"), "text").unwrap();
    let filters = [100, 100_000].map(|n| BloomFilter::with_fpr(n, 0.01).unwrap());
    std::thread::scope(|scope| {
        for filter in &filters {
            scope.spawn(|| (0..50).for_each(|_| filter.save(&path).unwrap()));
        }
    });
    assert!(filters.contains(&BloomFilter::open(&path).unwrap()));
    assert_eq!(std::fs::read_to_string(dir.join("saved.petal.part")).unwrap(), "text");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn types_are_parsed_from_their_names() {
    for filter_type in FilterType::ALL {
        assert_eq!(filter_type.name().parse::<FilterType>().unwrap(), filter_type);
    }
    assert!("Bloom".parse::<FilterType>().unwrap_err().is_invalid());
}

#[test]
fn clones_are_equal_and_independent() {
    let mut bloom = BloomFilter::with_fpr(100_000, 0.01).unwrap();
    bloom.insert("one");
    let mut clone = bloom.clone();
    assert!(clone == bloom && clone.inserted() == 1);
    clone.insert("two");
    assert!(clone != bloom && !bloom.contains("two"));

    let mut scalable = ScalableBloomFilter::with_fpr(10, 0.01).unwrap();
    (0..1000u32).for_each(|key| _ = scalable.insert(&key).unwrap());
    assert!(scalable.clone() == scalable);
    let filters: [AnyFilter; 6] = [
        CountingBloomFilter::with_fpr(10, 0.01).unwrap().into(),
        QuotientFilter::with_fpr(10, 0.01).unwrap().into(),
        VectorQuotientFilter::with_fpr(10, 0.01).unwrap().into(),
        WindowedBloomFilter::with_fpr(10, 0.01).unwrap().into(),
        StaticFilter::build(&["one"], 0.01).unwrap().into(),
        FilterCascade::build(&["one"], &["two"], 0.01).unwrap().into(),
    ];
    for filter in &filters {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        filter.write_to(&mut ours, "").unwrap();
        filter.clone().write_to(&mut theirs, "").unwrap();
        assert!(ours == theirs, "{}", filter.as_dyn().filter_type());
    }
}

#[test]
fn clones_of_borrowed_filters_borrow_and_try_clone_copies() {
    let mut bloom = BloomFilter::with_fpr(1000, 0.01).unwrap();
    bloom.insert("one");
    let mut file = Vec::new();
    bloom.write_to(&mut file, "").unwrap();
    // A copy that begins at a multiple of 64.
    let mut aligned = vec![0; file.len() + 64];
    let start = aligned.as_ptr().align_offset(64);
    aligned[start..start + file.len()].copy_from_slice(&file);
    let borrowed = BloomFilter::from_bytes(&aligned[start..start + file.len()]).unwrap();
    assert_eq!(borrowed.clone().memory_usage(), borrowed.memory_usage());
    let copy = borrowed.try_clone().unwrap();
    assert!(copy == bloom && copy.memory_usage() > borrowed.memory_usage());
}

#[test]
fn extend_inserts_every_key() {
    let mut bloom = BloomFilter::with_fpr(1000, 0.01).unwrap();
    bloom.extend(["one", "two"]);
    bloom.extend(vec![String::from("three")]);
    bloom.extend(0..100u8);
    assert!(["one", "two", "three"].iter().all(|key| bloom.contains(key)));
    assert!((0..100i64).all(|key| bloom.contains(&key)));

    let mut counting = CountingBloomFilter::with_fpr(1000, 0.01).unwrap();
    counting.extend(["one", "one"]);
    assert_eq!(counting.count("one"), 2);

    let mut windowed = WindowedBloomFilter::with_fpr(1000, 0.01).unwrap();
    windowed.extend(0..300u16);
    let mut atomic = AtomicBloomFilter::with_fpr(1000, 0.01).unwrap();
    atomic.extend(0..150u16);
    (&atomic).extend(150..300u16);
    assert!((0..300u16).all(|key| windowed.contains(&key) && atomic.contains(&key)));

    let mut typed = TypedBloomFilter::<(u8, &str)>::with_fpr(1000, 0.01).unwrap();
    typed.extend([(1, "one"), (2, "two")]);
    let copy = typed.try_clone().unwrap();
    assert!(copy == typed && copy.contains(&(2, "two")) && !typed.contains(&(2, "one")));
    assert!(copy != typed.clone().with_secret([1, 2]));
}

/// The inner filter has another hash, which is not used.
#[test]
fn debug_of_a_typed_filter_names_its_hash() {
    let typed = TypedBloomFilter::<u8>::with_fpr(1000, 0.01).unwrap().with_secret([7, 8]);
    let text = format!("{typed:?}");
    assert!(text.contains("siphash-1-3") && !text.contains("rapidhash"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}
