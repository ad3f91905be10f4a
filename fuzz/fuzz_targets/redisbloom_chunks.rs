//! Chunks of RedisBloom's filters from a client are rejected or stored correctly.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| petal_redis::fuzzing::redisbloom_chunks(data));
