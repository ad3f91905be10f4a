//! Calls the code of the selected kernel: vector code where the kernel has it, portable code
//! otherwise.

mod blocked;
mod classic;
mod counting;
mod fuse;
mod generations;
mod ribbon;
#[cfg(feature = "std")]
mod shared;
