//! The transforms of a filter's keys, in its metadata. Keys that are looked up or added must be changed
//! in the same way.

use std::path::Path;
use std::sync::Arc;

use petal_lines::{
    Fields, KeySpec, Settings, Spelling, Transform, recorded_query_transforms, recorded_transforms,
    transforms_text,
};

use crate::error::{Failure, Result};

/// Returns the transforms of the filter's keys; `None` if its metadata says nothing about keys.
pub(crate) fn of_filter(path: &Path, metadata: &str) -> Result<Option<Vec<Transform>>> {
    recorded_transforms(metadata).map_err(unknown(path))
}

fn unknown(path: &Path) -> impl Fn(String) -> Failure + '_ {
    move |list| {
        Failure::Message(format!(
            "{}: its keys were changed by '{list}', which this version of petal does not know; \
             use a newer version",
            path.display(),
        ))
    }
}

/// Returns the transforms of queries: those that the filter records for them, or those of its keys.
fn of_queries(path: &Path, metadata: &str) -> Result<Option<Vec<Transform>>> {
    match recorded_query_transforms(metadata).map_err(unknown(path))? {
        Some(transforms) => Ok(Some(transforms)),
        None => of_filter(path, metadata),
    }
}

/// Returns the transforms of queries of a filter whose keys are spelled in this way, given those that the
/// user gave: hexadecimal keys in one case are found in the other, too.
pub(crate) fn of_spelled_queries(
    path: &Path,
    metadata: &str,
    spelling: Option<Spelling>,
    given: &[Transform],
) -> Result<Option<Vec<Transform>>> {
    let Some(mut transforms) = of_queries(path, metadata)? else { return Ok(None) };
    // The keys of a list of digests are digests already, and queries may become such.
    if transforms.is_empty() && spelling.is_some_and(|keys| keys.hex_shape().is_some()) {
        transforms = given.to_vec();
    }
    transforms.extend(spelling.and_then(|keys| keys.transform_to_case(&transforms)));
    Ok(Some(transforms))
}

/// Makes a job look up keys as the filter records it. Returns an error if other transforms were given.
pub(crate) fn adopt_for_queries(
    path: &Path,
    metadata: &str,
    spelling: Option<Spelling>,
    settings: &mut Settings<'_>,
) -> Result<()> {
    let Some(recorded) = of_queries(path, metadata)? else { return Ok(()) };
    let given = &settings.keys.transforms;
    let transforms = of_spelled_queries(path, metadata, spelling, given)?.unwrap_or_default();
    let is_given = match transforms.split_last() {
        Some((Transform::ToCase(_), before)) => before == given,
        _ => transforms == *given,
    };
    if !is_given {
        refuse_others(path, settings, &recorded)?;
    }
    let keys = KeySpec { transforms, ..KeySpec::clone(&settings.keys) };
    settings.keys = Arc::new(keys);
    Ok(())
}

/// Makes a job look up the hashes in checksum files, of several those as long as the filter's keys.
pub(crate) fn take_checksums(spelling: Option<Spelling>, settings: &mut Settings<'_>) {
    let length = spelling.and_then(Spelling::hex_shape).and_then(|shape| shape.length);
    let fields = Fields::Checksum(length);
    settings.keys = Arc::new(KeySpec { fields, ..KeySpec::clone(&settings.keys) });
}

/// Makes a job change keys as those of the filter were. Returns an error if other transforms were
/// given.
pub(crate) fn adopt(path: &Path, metadata: &str, settings: &mut Settings<'_>) -> Result<()> {
    let Some(recorded) = of_filter(path, metadata)? else { return Ok(()) };
    refuse_others(path, settings, &recorded)?;
    let keys = KeySpec { transforms: recorded, ..KeySpec::clone(&settings.keys) };
    settings.keys = Arc::new(keys);
    Ok(())
}

/// Returns an error if transforms were given that are not these.
fn refuse_others(path: &Path, settings: &Settings<'_>, recorded: &[Transform]) -> Result<()> {
    let given = &settings.keys.transforms;
    if given.is_empty() || given == recorded {
        return Ok(());
    }
    let given = transforms_text(given);
    let (path, advice) = (path.display(), "leave it out to use those of the filter");
    Err(Failure::Message(match recorded {
        [] => format!(
            "--key-transform {given}: the keys of {path} were not changed; leave it out, or \
             build the filter with it"
        ),
        _ => format!(
            "--key-transform {given}: the keys of {path} were changed by '{}'; {advice}",
            transforms_text(recorded)
        ),
    }))
}

/// Returns an error if the keys of two filters were changed in different ways.
pub(crate) fn check_equal(left: (&Path, &str), right: (&Path, &str)) -> Result<()> {
    let queries = [left, right].map(|(path, metadata)| of_queries(path, metadata));
    let lists = [left, right].map(|(path, metadata)| of_filter(path, metadata));
    let [one, other] = lists;
    let (one, other) = (one?.unwrap_or_default(), other?.unwrap_or_default());
    let [one_queries, other_queries] = queries;
    if one == other && one_queries?.unwrap_or_default() == other_queries?.unwrap_or_default() {
        return Ok(());
    }
    let named = |list: &[Transform]| match list {
        [] => "not changed".to_owned(),
        _ => format!("changed by '{}'", transforms_text(list)),
    };
    Err(Failure::Message(format!(
        "{}: its keys were {}, those of {} were {}; build both with the same --key-transform",
        right.0.display(),
        named(&other),
        left.0.display(),
        named(&one),
    )))
}
