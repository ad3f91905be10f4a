//! The transforms of a filter's keys, in its metadata. Keys that are looked up or added must be changed
//! in the same way.

use std::path::Path;
use std::sync::Arc;

use petal_lines::{Fields, KeyChanges, KeySpec, Settings, Spelling, Transform, transforms_text};

use crate::error::{Failure, Result};

/// Reads how the keys of a filter were changed, and how queries are.
pub(crate) fn recorded(path: &Path, metadata: &str) -> Result<KeyChanges> {
    KeyChanges::recorded(metadata).map_err(|list| {
        Failure::Message(format!(
            "{}: its keys were changed by '{list}', which this version of petal does not know; \
             use a newer version",
            path.display(),
        ))
    })
}

/// Makes a job look up keys as the filter records it. Returns an error if other transforms were given.
pub(crate) fn adopt_for_queries(
    path: &Path,
    metadata: &str,
    spelling: Option<Spelling>,
    settings: &mut Settings<'_>,
) -> Result<()> {
    let changes = recorded(path, metadata)?;
    let given = settings.keys.transforms.clone();
    let of = if changes.of_queries_only().is_some() { Of::Queries } else { Of::Keys };
    let adopted = changes.adopt_for_queries(spelling, &given);
    set(settings, adopted.map_err(|recorded| others_given(path, of, &given, recorded))?);
    Ok(())
}

/// Makes a job look up digests as they are if the filter hashes queries, and no transforms were given.
pub(crate) fn take_hashes(path: &Path, metadata: &str, settings: &mut Settings<'_>) -> Result<()> {
    let changes = recorded(path, metadata)?;
    let queries = changes.recorded_of_queries().unwrap_or_default();
    if settings.keys.transforms.is_empty() && queries.iter().any(Transform::is_digest) {
        set(settings, vec![Transform::Lowercase]);
    }
    Ok(())
}

/// Makes a job look up the hashes in checksum files, of several those as long as the keys of all filters,
/// given with their transforms. Returns an error if the keys of two filters have different lengths, or if a
/// filter would hash the hashes.
pub(crate) fn take_checksums(
    filters: &[(&Path, Option<Spelling>, &[Transform])],
    settings: &mut Settings<'_>,
) -> Result<()> {
    let mut known: Option<(&Path, u64)> = None;
    for &(path, spelling, transforms) in filters {
        if let Some(digest) = transforms.iter().find(|transform| transform.is_digest()) {
            return Err(Failure::Message(format!(
                "--sums: queries of {} are changed by '{digest}', which would hash the hashes; leave out \
                 --key-transform",
                path.display(),
            )));
        }
        let shape = spelling.and_then(Spelling::hex_shape);
        let Some(length) = shape.and_then(|shape| shape.length) else { continue };
        match known {
            Some((other, others)) if others != length => {
                return Err(Failure::Message(format!(
                    "--sums: the hashes of {} have {others} digits, those of {} have {length}; ask one \
                     filter at a time",
                    other.display(),
                    path.display(),
                )));
            }
            _ => known = Some((path, length)),
        }
    }
    let fields = Fields::Checksum(known.map(|(_, length)| length));
    settings.keys = Arc::new(KeySpec { fields, ..KeySpec::clone(&settings.keys) });
    Ok(())
}

/// Makes a job change keys as those of the filter were. Returns an error if other transforms were
/// given.
pub(crate) fn adopt(path: &Path, metadata: &str, settings: &mut Settings<'_>) -> Result<()> {
    let changes = recorded(path, metadata)?;
    let given = settings.keys.transforms.clone();
    let adopted = changes.adopt(&given);
    set(settings, adopted.map_err(|recorded| others_given(path, Of::Keys, &given, recorded))?);
    Ok(())
}

/// What a filter changes.
#[derive(Clone, Copy)]
enum Of {
    Keys,
    /// Queries, but not its keys.
    Queries,
}

fn set(settings: &mut Settings<'_>, transforms: Vec<Transform>) {
    if settings.keys.transforms != transforms {
        settings.keys = Arc::new(KeySpec { transforms, ..KeySpec::clone(&settings.keys) });
    }
}

/// The error if other transforms than these were given.
fn others_given(path: &Path, of: Of, given: &[Transform], recorded: &[Transform]) -> Failure {
    let given = transforms_text(given);
    let (path, advice) = (path.display(), "leave it out to use those of the filter");
    Failure::Message(match (of, recorded) {
        (Of::Queries, _) => format!(
            "--key-transform {given}: queries of {path} are changed by '{}'; {advice}",
            transforms_text(recorded)
        ),
        (Of::Keys, []) => format!(
            "--key-transform {given}: the keys of {path} were not changed; leave it out, or \
             build the filter with it"
        ),
        (Of::Keys, _) => format!(
            "--key-transform {given}: the keys of {path} were changed by '{}'; {advice}",
            transforms_text(recorded)
        ),
    })
}

/// Returns an error if the keys of two filters, or queries of them, were changed in different ways.
pub(crate) fn check_equal(left: (&Path, &str), right: (&Path, &str)) -> Result<()> {
    let (one, other) = (recorded(left.0, left.1)?, recorded(right.0, right.1)?);
    if one == other {
        return Ok(());
    }
    let option = match one.of_keys() == other.of_keys() {
        true => "--query-transform",
        false => "--key-transform",
    };
    Err(Failure::Message(format!(
        "{}: its keys were {other}, those of {} were {one}; build both with the same {option}",
        right.0.display(),
        left.0.display(),
    )))
}
