//! Transfer of filters in pieces: [`SerializedView`](petal::SerializedView) and [`StreamDecoder`].
//!
//! A decoder must accept exactly what `AnyFilter::read_from` accepts, in pieces of any size.

use petal::embed::StreamDecoder;
use petal::{
    AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, Error, ErrorKind, FilterCascade, FilterSpec, FilterType, HashSpec,
    QuotientFilter, ScalableBloomFilter, Secret, StaticFilter, VectorQuotientFilter,
    WindowedBloomFilter,
};
use petal_testkit::corrupt::{bit_flips, extensions, truncations};

use crate::naive::update_checksums;

/// Returns one filter of each type with this number of keys, and some variants.
fn family(keys: u64) -> Vec<AnyFilter> {
    let rate = 0.01;
    let members: Vec<u64> = (0..keys).collect();
    let others: Vec<u64> = (keys..3 * keys).collect();
    let mut family: Vec<AnyFilter> = vec![
        BloomFilter::with_fpr(keys, rate).unwrap().into(),
        ClassicBloomFilter::with_fpr(keys, rate).unwrap().into(),
        CountingBloomFilter::with_fpr(keys, rate).unwrap().into(),
        ClassicCountingBloomFilter::with_fpr(keys, rate).unwrap().into(),
        QuotientFilter::with_fpr(keys, rate).unwrap().into(),
        ScalableBloomFilter::with_fpr(keys.div_ceil(10), rate).unwrap().into(),
        WindowedBloomFilter::with_fpr(keys, rate).unwrap().into(),
        StaticFilter::build(&members, rate).unwrap().into(),
        FilterCascade::build(&members, &others, rate).unwrap().into(),
        VectorQuotientFilter::with_fpr(keys, rate).unwrap().into(),
        StaticFilter::builder().fpr(rate).fuse(true).build(&members).unwrap().into(),
        // Empty filters.
        StaticFilter::build::<u64>(&[], rate).unwrap().into(),
        ScalableBloomFilter::with_fpr(1, rate).unwrap().into(),
        WindowedBloomFilter::with_fpr(keys, 1e-5).unwrap().into(),
    ];
    for filter in family.iter_mut().take(FilterType::ALL.len()) {
        let mut hashes = Vec::new();
        let spec = filter.as_dyn().hash_spec();
        spec.hash_all((0..keys).map(u64::to_le_bytes), &mut hashes);
        if let Ok(dynamic) = filter.as_dyn_mut() {
            dynamic.insert_mixed_hashes(&hashes, &mut BatchResults::new()).unwrap();
        }
    }
    let types: Vec<_> = family.iter().map(|filter| filter.as_dyn().filter_type()).collect();
    assert_eq!(types[..FilterType::ALL.len()], FilterType::ALL, "a type is missing here");
    family
}

fn file_of(filter: &AnyFilter, metadata: &str) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, metadata).unwrap();
    file
}

/// Decodes a file in pieces of equal length.
fn received(
    mut receiver: StreamDecoder,
    bytes: &[u8],
    cut: usize,
) -> Result<(AnyFilter, String), Error> {
    for (at, piece) in bytes.chunks(cut).enumerate() {
        receiver.push(piece)?;
        let (have, total) = receiver.progress();
        assert_eq!(have, (at * cut + piece.len()) as u64);
        assert!(have <= total);
    }
    receiver.finish()
}

#[test]
fn every_type_round_trips_in_pieces() {
    for filter in family(3000) {
        let kind = filter.as_dyn().filter_type();
        let file = file_of(&filter, "{\"a\":1}");
        let bare = file_of(&filter, "");
        // The serialized view is the file without metadata and padding.
        let image = filter.serialized();
        assert!(image.header()[..] == bare[..256], "{kind}");
        let sum = u64::from_le_bytes(bare[240..248].try_into().unwrap());
        assert!(image.header_with_sum(sum) == image.header(), "{kind}");
        assert_eq!(image.data_len(), filter.as_dyn().size_bytes(), "{kind}");
        for cut in [1, 7, 64, 4096, usize::MAX] {
            let mut carried = image.header().to_vec();
            let mut at = 0;
            while at < image.data_len() {
                let fresh = filter.serialized();
                let piece = fresh.read(at, cut);
                assert!(!piece.is_empty() && piece.len() <= cut, "{kind}");
                carried.extend_from_slice(piece);
                at += piece.len() as u64;
            }
            assert!(image.read(at, cut).is_empty() && image.read(u64::MAX, cut).is_empty());
            assert!(carried[256..] == bare[4096..], "{kind}");
            let max = image.data_len();
            let (again, metadata) =
                received(StreamDecoder::serialized(max), &carried, cut).unwrap();
            assert!(metadata.is_empty() && file_of(&again, "") == bare, "{kind} in {cut}");
            let (again, metadata) = received(StreamDecoder::file(max), &file, cut).unwrap();
            assert_eq!(metadata, "{\"a\":1}");
            assert!(file_of(&again, &metadata) == file, "{kind} in {cut}");
            assert_eq!(again.as_dyn().memory_usage(), filter.as_dyn().memory_usage());
        }
        assert!(image.read(0, 0).is_empty());
        if image.data_len() > 0 {
            let max = image.data_len() - 1;
            let error = received(StreamDecoder::file(max), &file, 4096).unwrap_err();
            assert!(error.is_invalid(), "{kind}: {error}");
        }
        let copy = filter.try_clone().unwrap();
        assert!(file_of(&copy, "") == bare, "{kind}");
    }
}

/// Larger than the steps of 256 KiB in which data is checked during the transfer.
#[test]
fn errors_are_found_during_the_transfer_or_at_its_end() {
    for filter in family(1_300_000) {
        let kind = filter.as_dyn().filter_type();
        let file = file_of(&filter, "");
        for cut in [10_000, 1 << 20, (1 << 20) + 64, usize::MAX] {
            let (again, _) = received(StreamDecoder::file(1 << 30), &file, cut).unwrap();
            assert!(file_of(&again, "") == file, "{kind}");
        }
        // Bits that no writer creates, with valid checksums.
        for at in (4096..file.len()).step_by(file.len() / 9).chain([file.len() - 1]) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x80;
            assert!(received(StreamDecoder::file(1 << 30), &damaged, 100_000).is_err(), "{kind}");
            update_checksums(&mut damaged);
            agree(&format!("{kind} at {at}"), &damaged, 100_000);
        }
    }
}

/// A table is checked block by block during the transfer; a run may end in a much later block.
#[test]
fn quotient_tables_are_checked_alike_in_any_pieces() {
    // With wide remainders, 80,000 of them in one run exceed a step of 256 KiB. The filter is a union
    // of parts, because insertions into long runs are slow.
    let empty = || QuotientFilter::with_fpr(200_000, 1e-9).unwrap();
    let mut filter = empty();
    let run = u64::MAX / filter.layout().slots();
    for part in 0..16 {
        let mut some = empty();
        let hashes: Vec<u64> =
            (part..80_000).step_by(16).map(|at| 50 * run + run / 100_000 * (at + 1)).collect();
        some.add_mixed_hashes(&hashes).unwrap();
        filter.union(&some).unwrap();
    }
    // Copies, with runs of usual lengths before and after.
    filter.add_mixed_hashes(&[3 << 62; 900]).unwrap();
    (0..60_000u64).for_each(|key| _ = filter.insert(&key).unwrap());
    assert!(filter.len() > 140_000);
    let filter = AnyFilter::from(filter);
    let file = file_of(&filter, "");
    for cut in [1000, 64 << 10, 256 << 10, 300_001, usize::MAX] {
        assert!(agree("long runs", &file, cut), "{cut}");
    }
    for at in (4096..file.len()).step_by(file.len() / 97) {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= flip;
            update_checksums(&mut damaged);
            agree(&format!("byte {at} changed by {flip}"), &damaged, 50_000);
        }
    }
}

/// Checks that decoder and reader agree. Returns whether they accept the file.
fn agree(what: &str, file: &[u8], cut: usize) -> bool {
    let read = AnyFilter::read_from(file);
    let received = received(StreamDecoder::file(1 << 30), file, cut);
    match (&read, &received) {
        (Ok((read, metadata)), Ok((received, same))) => {
            assert_eq!(metadata, same, "{what}");
            assert!(file_of(read, metadata) == file_of(received, metadata), "{what}");
        }
        (Err(_), Err(error)) => assert!(error.to_string().len() > 20, "{what}: {error}"),
        _ => panic!("{what}: read {:?}, received {:?}", read.err(), received.err()),
    }
    read.is_ok()
}

#[test]
fn decoder_accepts_exactly_what_the_reader_accepts() {
    for filter in family(20) {
        let kind = filter.as_dyn().filter_type();
        for metadata in ["", "{\"what\":\"G\u{e4}ste\"}"] {
            let file = file_of(&filter, metadata);
            for short in truncations(&file) {
                assert!(!agree(&format!("{kind} cut to {}", short.len()), short, 4000));
            }
            for longer in extensions(&file) {
                assert!(!agree(&format!("{kind} with more"), &longer, 4000));
            }
            for (bit, damaged) in bit_flips(&file).take(8 * 300) {
                assert!(!agree(&format!("{kind} with bit {bit} flipped"), &damaged, 999));
            }
            // The same with valid checksums: many of them are filters.
            let mut accepted = 0;
            let data = 8 * 4096..8 * file.len();
            let bits = (0..8 * 300).chain(data.step_by(3));
            for bit in bits.filter(|bit| !(240..256).contains(&(bit / 8))) {
                let mut damaged = file.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // A corrupted length does not locate metadata.
                if (32..36).contains(&(bit / 8)) {
                    continue;
                }
                update_checksums(&mut damaged);
                let what = format!("{kind} with bit {bit} flipped and mended");
                accepted += u32::from(agree(&what, &damaged, 1013));
            }
            assert!(accepted > 0, "{kind}");
        }
    }
}

#[test]
fn serialized_view_has_no_metadata_and_failed_decoder_stays_failed() {
    let filter = &family(20)[0];
    let image = filter.serialized();
    let data = image.read(0, usize::MAX);
    let whole = [&image.header()[..], data].concat();
    for cut in 0..whole.len() {
        let mut receiver = StreamDecoder::serialized(1 << 20);
        receiver.push(&whole[..cut]).unwrap();
        assert!(receiver.finish().is_err(), "cut to {cut}");
    }
    let mut receiver = StreamDecoder::serialized(1 << 20);
    receiver.push(&whole).unwrap();
    assert!(receiver.push(&[]).is_ok());
    assert!(receiver.push(&[0]).unwrap_err().is_corrupt());
    assert!(receiver.push(&[]).unwrap_err().is_invalid());
    assert_eq!(receiver.progress(), (0, 0));
    assert!(receiver.finish().unwrap_err().is_invalid());
    // A file with metadata is not a serialized view.
    let file = file_of(filter, "{}");
    assert!(StreamDecoder::serialized(1 << 20).push(&file).unwrap_err().is_invalid());
    // Nor is a file without metadata, because of its padding.
    let file = file_of(filter, "");
    assert!(received(StreamDecoder::serialized(1 << 20), &file, 64).is_err());
    // Bytes of other formats are detected at once.
    for bytes in [&b"x"[..], b"\x89PETAX", &[b'x'; 256]] {
        assert!(StreamDecoder::file(1 << 20).push(bytes).unwrap_err().is_foreign());
    }
    assert!(StreamDecoder::file(1 << 20).finish().unwrap_err().is_foreign());
}

#[test]
fn filter_above_the_limit_is_an_error_with_both_sizes() {
    let filter = &family(1000)[0];
    let file = file_of(filter, "");
    let needed = filter.serialized().data_len();
    let error = StreamDecoder::file(needed - 1).push(&file).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NoMemory { bytes, minimum } if (*bytes, *minimum) == (needed - 1, needed)),
        "{error}"
    );
    StreamDecoder::file(needed).push(&file).unwrap();
}

#[test]
fn filter_without_its_secret_is_decoded_with_it_only() {
    let [secret, other] = [1, 2].map(|byte| Secret::new([byte; 16]));
    for filter in family(1000) {
        let hash = HashSpec::keyed_apart(&secret);
        let kind = filter.as_dyn().filter_type();
        let Ok(filter) = AnyFilter::build(&FilterSpec {
            capacity: Some(1000),
            fpr: Some(0.01),
            hash,
            ..FilterSpec::new(kind)
        }) else {
            continue;
        };
        let file = file_of(&filter, "");
        let decoder = |secret| StreamDecoder::file(1 << 30).with_secret(secret);
        assert!(received(decoder(None), &file, 100).unwrap_err().is_secret_missing(), "{kind}");
        let wrong = received(decoder(Some(other.clone())), &file, 100).unwrap_err();
        assert!(wrong.is_secret() && !wrong.is_secret_missing(), "{kind}");
        let (again, _) = received(decoder(Some(secret.clone())), &file, 100).unwrap();
        assert!(again == filter && file_of(&again, "") == file, "{kind}");
    }
}
