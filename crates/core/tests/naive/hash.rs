//! The hashes of docs/reference/format.md from their publications: rapidhash v3 (Nicolas De Carli) and
//! SipHash-c-d (Aumasson & Bernstein 2012).

use super::{HeaderFields, times};

/// Returns the hash of a key's bytes for the hash id and seed of a file.
pub(crate) fn hash(fields: &HeaderFields, key: &[u8]) -> u64 {
    let [low, high] = [word(&fields.seed, 0), word(&fields.seed, 8)];
    match fields.hash {
        1 => rapidhash(key, low ^ mix(low ^ SECRET[2], SECRET[1]), &SECRET),
        5 => {
            // The seed is derived like an eighth secret.
            let secrets = PI.map(|[one, two]| mix(low ^ one, high ^ two));
            rapidhash(key, secrets[7], &secrets)
        }
        2 => siphash(key, [low, high], 1, 3),
        id => panic!("no hash {id}"),
    }
}

const SECRET: [u64; 7] = [
    0x2d35_8dcc_aa6c_78a5,
    0x8bb8_4b93_962e_acc9,
    0x4b33_a62e_d433_d4a3,
    0x4d5a_2da5_1de1_aa47,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x90ed_1765_281c_388c,
];

/// Bits of the fraction of π: for each secret the constants for the two words of the key.
const PI: [[u64; 2]; 8] = [
    [0x243f_6a88_85a3_08d3, 0x9216_d5d9_8979_fb1b],
    [0x1319_8a2e_0370_7344, 0xd131_0ba6_98df_b5ac],
    [0xa409_3822_299f_31d0, 0x2ffd_72db_d01a_dfb7],
    [0x082e_fa98_ec4e_6c89, 0xb8e1_afed_6a26_7e96],
    [0x4528_21e6_38d0_1377, 0xba7c_9045_f12c_7f99],
    [0xbe54_66cf_34e9_0c6c, 0x24a1_9947_b391_6cf7],
    [0xc0ac_29b7_c97c_50dd, 0x0801_f2e2_858e_fc16],
    [0x3f84_d5b5_b547_0917, 0x6369_20d8_7157_4e69],
];

fn word(bytes: &[u8], at: usize) -> u64 {
    (0..8).map(|byte| u64::from(bytes[at + byte]) << (8 * byte)).sum()
}

fn half(bytes: &[u8], at: usize) -> u64 {
    (0..4).map(|byte| u64::from(bytes[at + byte]) << (8 * byte)).sum()
}

/// Returns the XOR of both halves of the 128-bit product.
fn mix(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64 ^ times(a, b)
}

fn rapidhash(key: &[u8], mut seed: u64, secrets: &[u64]) -> u64 {
    let length = key.len();
    let (mut a, mut b, mut left) = (0, 0, length as u64);
    if length <= 16 {
        if length >= 8 {
            seed ^= length as u64;
            (a, b) = (word(key, 0), word(key, length - 8));
        } else if length >= 4 {
            seed ^= length as u64;
            (a, b) = (half(key, 0), half(key, length - 4));
        } else if length > 0 {
            a = u64::from(key[0]) << 45 | u64::from(key[length - 1]);
            b = u64::from(key[length / 2]);
        }
    } else {
        let mut at = 0;
        if length > 112 {
            let mut see = [seed; 7];
            while length - at > 112 {
                for (lane, see) in see.iter_mut().enumerate() {
                    let at = at + 16 * lane;
                    *see = mix(word(key, at) ^ secrets[lane], word(key, at + 8) ^ *see);
                }
                at += 112;
            }
            seed = see.into_iter().fold(0, |sum, see| sum ^ see);
        }
        // Of the last 17 to 112 bytes all but the last 16, 16 at a time.
        let tail = at;
        for secret in [secrets[2], secrets[2], secrets[1], secrets[1], secrets[2], secrets[1]] {
            if length - tail > 16 + (at - tail) {
                seed = mix(word(key, at) ^ secret, word(key, at + 8) ^ seed);
                at += 16;
            }
        }
        left = (length - tail) as u64;
        (a, b) = (word(key, length - 16) ^ left, word(key, length - 8));
    }
    let product = u128::from(a ^ secrets[1]) * u128::from(b ^ seed);
    mix(product as u64 ^ 0xaaaa_aaaa_aaaa_aaaa, (product >> 64) as u64 ^ secrets[1] ^ left)
}

/// SipHash-c-d of these bytes under the key of two words.
pub(crate) fn siphash(bytes: &[u8], [low, high]: [u64; 2], c: u32, d: u32) -> u64 {
    let mut v = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    // Whole words, then what is left with the length in the top byte.
    let mut message = bytes.to_vec();
    message.resize(bytes.len() / 8 * 8 + 7, 0);
    message.push(bytes.len() as u8);
    for at in (0..message.len()).step_by(8) {
        let word = word(&message, at);
        v[3] ^= word;
        (0..c).for_each(|_| sip_round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..d).for_each(|_| sip_round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}
