//! The formats, one file each, and the functions that open and make a filter of any of them.

mod datasketches;
mod dcso;
pub(crate) mod detect;
pub(crate) mod filter_cascade;
pub(crate) mod format_impl;
pub(crate) mod fpr_floor;
mod go_bloom;
mod guava;
mod hadoop;
pub(crate) mod parquet;
mod poppy;
mod pybloom;
mod rbloom;
pub(crate) mod redisbloom;
mod spark;
mod squid;

pub(crate) use redisbloom::chunks as redisbloom_chunks;

pub use filter_cascade::CascadeHash;

pub(crate) use spark::sql_hash_fn;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{FormatImpl, Plan};

/// Parses the header of a filter of this format.
pub(crate) fn open(format: Format, file: &[u8]) -> Result<Box<dyn FormatImpl>> {
    Ok(match format {
        Format::Parquet => Box::new(parquet::Parquet::parse(file)?),
        Format::Guava => Box::new(guava::Guava::parse(file, true)?),
        Format::Guava32 => Box::new(guava::Guava::parse(file, false)?),
        Format::SparkV1 => Box::new(spark::Spark::parse(file, spark::Version::V1)?),
        Format::SparkV2 => Box::new(spark::Spark::parse(file, spark::Version::V2)?),
        Format::Dcso => Box::new(dcso::Dcso::parse(file)?),
        Format::Poppy => Box::new(poppy::Poppy::parse(file)?),
        Format::GoBloom => Box::new(go_bloom::GoBloom::parse(file)?),
        Format::SquidDigest => Box::new(squid::SquidDigest::parse(file)?),
        Format::RedisBloom => Box::new(redisbloom::RedisBloom::parse(file)?),
        Format::Rbloom => Box::new(rbloom::Rbloom::parse(file)?),
        Format::Pybloom => match pybloom::Growing::parse(file) {
            Ok(growing) => Box::new(growing),
            Err(growing) => Box::new(pybloom::Pybloom::parse(file).map_err(|error| {
                if growing.expected_length().is_some() { growing } else { error }
            })?),
        },
        Format::DataSketches => Box::new(datasketches::DataSketches::parse(file)?),
        Format::HadoopJenkins => Box::new(hadoop::Hadoop::parse(file, hadoop::Hash::Jenkins)?),
        Format::HadoopMurmur => Box::new(hadoop::Hadoop::parse(file, hadoop::Hash::Murmur)?),
        Format::FilterCascade => Box::new(filter_cascade::FilterCascade::parse(file)?),
    })
}

/// Returns the offset where a filter ends and user data may follow; `None` if the format has no user
/// data.
pub(crate) fn end(format: Format, file: &[u8]) -> Result<Option<u64>> {
    Ok(match format {
        Format::Dcso => Some(dcso::end(file)?),
        Format::Poppy => Some(poppy::end(file)?),
        _ => None,
    })
}

/// Makes an empty filter of this format, sized as its program would size it.
pub(crate) fn plan(format: Format, plan: &Plan) -> Result<(Box<dyn FormatImpl>, Vec<u8>)> {
    fn boxed<S: FormatImpl + 'static>(
        (layout, file): (S, Vec<u8>),
    ) -> (Box<dyn FormatImpl>, Vec<u8>) {
        (Box::new(layout), file)
    }
    Ok(match format {
        Format::Parquet => boxed(parquet::Parquet::plan(plan)?),
        Format::Guava => boxed(guava::Guava::plan(plan, true)?),
        Format::Guava32 => boxed(guava::Guava::plan(plan, false)?),
        Format::SparkV1 => boxed(spark::Spark::plan(plan, spark::Version::V1)?),
        Format::SparkV2 => boxed(spark::Spark::plan(plan, spark::Version::V2)?),
        Format::Dcso => boxed(dcso::Dcso::plan(plan)?),
        Format::Poppy => boxed(poppy::Poppy::plan(plan)?),
        Format::GoBloom => boxed(go_bloom::GoBloom::plan(plan)?),
        Format::SquidDigest => boxed(squid::SquidDigest::plan(plan)?),
        Format::RedisBloom => boxed(redisbloom::RedisBloom::plan(plan)?),
        Format::Rbloom => boxed(rbloom::Rbloom::plan(plan)?),
        Format::Pybloom => boxed(pybloom::Pybloom::plan(plan)?),
        Format::DataSketches => boxed(datasketches::DataSketches::plan(plan)?),
        Format::HadoopJenkins => boxed(hadoop::Hadoop::plan(plan, hadoop::Hash::Jenkins)?),
        Format::HadoopMurmur => boxed(hadoop::Hadoop::plan(plan, hadoop::Hash::Murmur)?),
        Format::FilterCascade => {
            let what = "is made of all members and non-members at once, with the function cascade";
            return Err(Error::unsupported(format, what));
        }
    })
}
