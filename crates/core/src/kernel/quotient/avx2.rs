//! Tables with the instructions of AVX2 and those that came with it: the portable code with other selection.

use super::fill::Filler;
use super::params::TableParams;
use super::table::{BatchInserted, Table};
use super::update::InsertOutcome;
use crate::kernel::avx2::Avx2;
use crate::kernel::dispatch::Quotient;

/// Defines functions of [`Quotient`].
macro_rules! functions {
    ($(
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, $select:ident => $call:expr;
    )*) => {$(
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the caller guarantees the instructions.
            let $select = unsafe { Avx2::new_unchecked() };
            $call
        }
    )*};
}

impl Quotient for Avx2 {
    functions! {
        quotient_contains(params: TableParams, bytes: &[u8], fingerprint: u64) -> bool,
            select => params.contains(select, bytes, fingerprint);
        quotient_count(params: TableParams, bytes: &[u8], fingerprint: u64) -> u64,
            select => params.count(select, bytes, fingerprint);
        quotient_insert(
            params: TableParams, bytes: &mut [u8], fingerprint: u64, duplicates: bool
        ) -> InsertOutcome,
            select => params.insert(select, bytes, fingerprint, duplicates);
        quotient_remove(params: TableParams, bytes: &mut [u8], fingerprint: u64) -> u64,
            select => params.remove(select, bytes, fingerprint);
        quotient_contains_batch(table: &Table, bytes: &[u8], hashes: &[u64], found: &mut [u64]),
            select => table.contains_all(select, bytes, hashes, found);
        quotient_insert_batch(
            table: &Table, bytes: &mut [u8], hashes: &[u64], first: usize, limits: (u64, bool),
            new: &mut [u64]
        ) -> BatchInserted,
            select => table.insert_all(select, bytes, hashes, first, limits, new);
        quotient_finish(filler: Filler<'_>),
            select => filler.finish(select);
    }
}
