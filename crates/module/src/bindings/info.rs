//! The module's section of `INFO`.

use std::ffi::c_int;

use super::{data_types, metrics};
use crate::server::abi::{self, Info};
use crate::server::{allocated_bytes, api};

pub(super) unsafe extern "C" fn write_section(info: *mut Info, _for_crash_report: c_int) {
    let now = [(c"filters", data_types::value_count()), (c"memory_bytes", allocated_bytes())];
    let counters = metrics::ALL.iter().map(|counter| (counter.name, counter.get()));
    // SAFETY: `info` is the server's; the names are static.
    unsafe {
        if (api().info_section)(info, c"".as_ptr()) != abi::OK {
            return;
        }
        for (name, value) in now.into_iter().chain(counters) {
            (api().info_number)(info, name.as_ptr(), value);
        }
    }
}
