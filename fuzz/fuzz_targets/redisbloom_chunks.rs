//! Chunks of RedisBloom's filters as a client might send them: refused, or put where they belong.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| petal_redis::fuzzing::redisbloom_chunks(data));
