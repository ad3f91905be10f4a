//! Fields of RedisBloom's filters and sketches from a server's file: what loads is used, saved and loaded again. No
//! panic, no large allocation from an unchecked length.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| petal_redis::fuzzing::redisbloom_fields(data));
