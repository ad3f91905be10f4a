//! Fields of RedisBloom's filters as a server's file might have them: what loads is used, saved and
//! loaded again; nothing panics, nothing is allocated from a number that lies.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| petal_redis::fuzzing::redisbloom_fields(data));
