//! `PETAL.RESERVE`: a filter of any type that petal fills key by key. It is also how replicas and
//! the append-only file are told of every new filter, so that [`words`] and [`parse`] are each
//! other's reverse.

use std::ffi::CStr;
use std::ops::Range;

use super::{KEY, PETAL};
use crate::about::{About, Arg, ArgKind, PUT, key};
use crate::commands::bf::{capacity, expansion, rate};
use crate::commands::cf;
use crate::commands::words::{Reading, integer, is};
use crate::commands::{limit, replicate_creation};
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Loses, Opened, Word};
use crate::object::Clock;
use crate::plan::{Form, Growth, Plan};

/// Milliseconds that a key may live: a thousand years, which no clock overflows.
const MOST_TIME_TO_LIVE: u64 = 1000 * 366 * 86_400_000;
/// The option of commands that create a filter.
pub(super) const TTL: Arg = Arg::new(c"time_to_live", ArgKind::Text).after(c"TTL");

/// Where nobody chose: see `WindowedBuilder::generations`.
const GENERATIONS: u32 = 4;

pub(in crate::commands) struct Reserve;

impl Command for Reserve {
    const LOSES: Loses = Loses::Filter;

    const ABOUT: About = About {
        name: c"PETAL.RESERVE",
        summary:
            c"Creates an empty filter: one that grows, deletes, or forgets. SATURATE: a filter \
            that does not grow accepts items beyond its capacity, and errs more often then. \
            GROWTHSHARE n: of a filter that grows, 1/n of the error rate is kept for the layers \
            after the first; left out, 4, or 64 for rates below 0.4 %. WINDOW: what was not put in \
            for so long is forgotten (7d, 12h, 30m, 45s, 1500ms). LAST: it is a window of as many \
            items as its capacity. SEED: filters of one seed, rate and capacity can be merged and \
            compared; whoever knows it can make items that collide. BUCKETSIZE and MAXITERATIONS \
            of a cuckoo filter are for what CF.INFO tells. TTL: the key expires after this time",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(PUT)],
        args: &[
            KEY,
            Arg::new(c"error_rate", ArgKind::Double),
            Arg::new(c"capacity", ArgKind::Integer),
            Arg {
                token: Some(c"TYPE"),
                ..Arg::one_of(
                    c"type",
                    &[
                        Arg::word(c"bloom", c"bloom"),
                        Arg::word(c"counting", c"counting"),
                        Arg::word(c"window", c"window"),
                        Arg::word(c"cuckoo", c"cuckoo"),
                    ],
                )
            }
            .or_nothing(),
            Arg::one_of(
                c"growth",
                &[
                    Arg::new(c"expansion", ArgKind::Integer).named(c"EXPANSION"),
                    Arg::word(c"nonscaling", c"NONSCALING"),
                ],
            )
            .or_nothing(),
            Arg::flag(c"saturate", c"SATURATE"),
            Arg::new(c"growthshare", ArgKind::Integer).after(c"GROWTHSHARE"),
            Arg::one_of(
                c"extent",
                &[Arg::new(c"time", ArgKind::Text).named(c"WINDOW"), Arg::word(c"last", c"LAST")],
            )
            .or_nothing(),
            Arg::new(c"generations", ArgKind::Integer).after(c"GENERATIONS"),
            Arg::new(c"bucketsize", ArgKind::Integer).after(c"BUCKETSIZE"),
            Arg::new(c"maxiterations", ArgKind::Integer).after(c"MAXITERATIONS"),
            Arg::new(c"seed", ArgKind::Text).after(c"SEED"),
            TTL,
        ],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 4 {
            return Err(Failure::Arity);
        }
        let wanted = Wanted::parse(call, 2..call.len())?;
        let mut key = call.write(1);
        if key.object().known()?.is_some() {
            return Err(Failure::Says("ERR item exists"));
        }
        wanted.create(call, &mut key)?;
        call.ok();
        Ok(())
    }
}

/// A filter to be created, and how long the key lives.
pub(super) struct Wanted {
    pub(super) plan: Plan,
    /// Milliseconds; `None`: the key does not expire.
    time_to_live: Option<u64>,
}

impl Wanted {
    /// Reads the error rate, the capacity and the options from these words of a call.
    pub(super) fn parse(call: &Call<'_>, at: Range<usize>) -> Result<Self, Failure> {
        let mut words: Vec<_> = at.map(|at| call.word(at)).collect();
        let time_to_live = take_time_to_live(&mut words)?;
        let reading = Reading::of(call);
        let plan = parse(&words, &Settings::now(), reading, || call.random_key())?;
        Ok(Self { plan, time_to_live })
    }

    /// Creates the filter in a key that holds nothing, and replicates it.
    pub(super) fn create(&self, call: &Call<'_>, key: &mut Opened<'_>) -> Result<(), Failure> {
        let Self { plan, time_to_live } = self;
        key.set(plan.make(limit(call, Settings::now().memory_limit))?)?;
        replicate_creation(call, plan);
        if let Some(time) = time_to_live {
            // An absolute time: replicas and logs expire the key at the same moment.
            let at = call.now().saturating_add(*time).min(i64::MAX as u64);
            key.expire_at(at)?;
            let at = at.to_string();
            call.replicate(c"PEXPIREAT", &[Word::Same(1), Word::Bytes(at.as_bytes())]);
        }
        let cuckoo = matches!(plan.form, Form::Cuckoo { .. });
        call.notify(if cuckoo { c"cuckoo.reserve" } else { c"bloom.reserve" }, 1);
        Ok(())
    }
}

/// Removes `TTL time` from the words; the time in milliseconds.
fn take_time_to_live(words: &mut Vec<&[u8]>) -> Result<Option<u64>, Failure> {
    // Behind the rate and the capacity; no other option has a value that reads so.
    let Some(at) = words.iter().skip(2).position(|word| is(word, "TTL")) else { return Ok(None) };
    let at = at + 2;
    let value = *words.get(at + 1).ok_or(Failure::Says("ERR no time to live"))?;
    words.drain(at..at + 2);
    let time = milliseconds(value).filter(|time| *time <= MOST_TIME_TO_LIVE);
    let bad = Failure::Says("ERR a time to live is a time above 0: 7d, 12h, 30m, 45s or 1500ms");
    time.map(Some).ok_or(bad)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Bloom,
    Counting,
    Window,
    Cuckoo,
}

/// The plan that the words behind the key tell; what they do not tell is as given.
fn parse(
    words: &[&[u8]],
    usual: &Settings,
    reading: Reading,
    random: impl FnOnce() -> [u8; 16],
) -> Result<Plan, Failure> {
    let [first, second, options @ ..] = words else { return Err(Failure::Arity) };
    let (rate, keys) = (rate(Reading::Strict, first)?, capacity(second)?);
    let (mut kind, mut growth, mut share) = (None, None, None);
    let (mut nonscaling, mut saturate) = (false, false);
    let (mut time, mut last, mut generations, mut seed) = (None, false, None, None);
    let (mut bucket_size, mut iterations) = (None, None);
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        let mut value = |lacking| options.next().ok_or(Failure::Says(lacking));
        if is(option, "TYPE") {
            kind = Some(type_named(value("ERR no type")?)?);
        } else if is(option, "EXPANSION") {
            growth = Some(expansion(value("ERR no expansion")?)?);
        } else if is(option, "GROWTHSHARE") {
            let parts = integer(value("ERR no growth share")?);
            let parts = parts.and_then(|parts| u64::try_from(parts).ok());
            share = Some(parts.filter(|parts| (2..=1 << 16).contains(parts)).ok_or(
                Failure::Says("ERR a growth share is one of 2 to 65536 parts of the error rate"),
            )?);
        } else if is(option, "SATURATE") {
            saturate = true;
        } else if is(option, "NONSCALING") {
            nonscaling = true;
        } else if is(option, "WINDOW") {
            time = Some(milliseconds(value("ERR no window")?).ok_or(Failure::Says(
                "ERR a window is a time above 0: 7d, 12h, 30m, 45s or 1500ms",
            ))?);
        } else if is(option, "LAST") {
            last = true;
        } else if is(option, "GENERATIONS") {
            let number = integer(value("ERR no generations")?);
            let number = number.and_then(|number| u32::try_from(number).ok());
            generations = Some(
                number
                    .filter(|number| (2..=12).contains(number))
                    .ok_or(Failure::Says("ERR a window has 2 to 12 generations"))?,
            );
        } else if is(option, "BUCKETSIZE") {
            let size = cf::number(value("ERR no bucket size")?, 1..=255);
            bucket_size = Some(size.ok_or(Failure::Says("ERR a bucket has from 1 to 255 slots"))?);
        } else if is(option, "MAXITERATIONS") {
            let number = cf::number(value("ERR no iterations")?, 1..=u16::MAX);
            iterations = Some(number.ok_or(Failure::Says("ERR iterations are from 1 to 65535"))?);
        } else if is(option, "SEED") {
            let digits = value("ERR no seed")?;
            seed = Some(hex(digits).ok_or(Failure::Says("ERR a seed is 32 hex digits"))?);
        } else {
            return Err(Failure::Says("ERR unknown argument received"));
        }
    }
    let windowed = time.is_some() || last || generations.is_some();
    let kind = kind.unwrap_or(if windowed { Type::Window } else { Type::Bloom });
    if kind != Type::Window && windowed {
        return Err(Failure::Says("ERR WINDOW, LAST and GENERATIONS are for TYPE window"));
    }
    if !matches!(kind, Type::Bloom | Type::Cuckoo) && (nonscaling || growth.is_some()) {
        return Err(Failure::Says("ERR EXPANSION and NONSCALING are for TYPE bloom or cuckoo"));
    }
    if kind != Type::Cuckoo && (bucket_size.is_some() || iterations.is_some()) {
        return Err(Failure::Says("ERR BUCKETSIZE and MAXITERATIONS are for TYPE cuckoo"));
    }
    if nonscaling && growth.is_some() {
        return Err(Failure::Says("ERR EXPANSION or NONSCALING, not both"));
    }
    if share.is_some() && (nonscaling || kind != Type::Bloom) {
        return Err(Failure::Says("ERR GROWTHSHARE is for TYPE bloom that grows"));
    }
    if saturate && (!nonscaling || kind != Type::Bloom) {
        return Err(Failure::Says("ERR SATURATE is for TYPE bloom NONSCALING"));
    }
    let usual_growth = Some(usual.bf_expansion).filter(|growth| *growth > 0);
    let form = match kind {
        Type::Cuckoo => {
            let growth = if nonscaling { 0 } else { growth.unwrap_or(usual.cf_expansion) };
            let growth = u16::try_from(growth).ok().filter(|growth| *growth <= cf::MOST_EXPANSION);
            Form::Cuckoo {
                expansion: growth.ok_or(Failure::Says("ERR an expansion is at most 32768"))?,
                bucket_size: bucket_size.unwrap_or(usual.cf_bucket_size as u16),
                iterations: iterations.unwrap_or(usual.cf_max_iterations as u16),
            }
        }
        Type::Bloom if saturate => Form::Saturating,
        Type::Bloom if nonscaling => Form::Bloom { growth: None },
        Type::Bloom => {
            let growth = growth.or(usual_growth).map(|factor| match (share, reading) {
                (Some(share), _) => Growth { factor, share },
                // Masters and logs name the share wherever a filter has one.
                (None, Reading::Accepted) => Growth::by(factor),
                (None, Reading::Strict) => Growth::from_stated(factor, rate),
            });
            Form::Bloom { growth }
        }
        Type::Counting => Form::Counting,
        Type::Window if time.is_some() == last => {
            return Err(Failure::Says(
                "ERR a window is either of a time (WINDOW 7d) or of the LAST items",
            ));
        }
        Type::Window => {
            let generations = generations.unwrap_or(GENERATIONS);
            Form::Window { milliseconds: time, generations }
        }
    };
    Ok(Plan { form, rate, keys, seed: seed.unwrap_or_else(random) })
}

fn type_named(word: &[u8]) -> Result<Type, Failure> {
    let types = [
        ("bloom", Type::Bloom),
        ("counting", Type::Counting),
        ("window", Type::Window),
        ("cuckoo", Type::Cuckoo),
    ];
    let found = types.into_iter().find(|(name, _)| is(word, name));
    let unknown = Failure::Says("ERR the types are bloom, counting, window and cuckoo");
    found.map(|(_, kind)| kind).ok_or(unknown)
}

/// A time above 0: a number and its unit, or of milliseconds.
fn milliseconds(word: &[u8]) -> Option<u64> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = word.split_at(digits);
    let each = match unit {
        b"ms" => 1,
        b"s" => 1_000,
        b"m" => 60_000,
        b"h" => 3_600_000,
        b"d" => 86_400_000,
        _ => return None,
    };
    let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    number.checked_mul(each).filter(|time| *time > 0)
}

/// 16 bytes as 32 digits.
fn hex(digits: &[u8]) -> Option<[u8; 16]> {
    let mut seed = [0; 16];
    if digits.len() != 2 * seed.len() {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    for (byte, pair) in seed.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(seed)
}

/// The command that makes the same filter anywhere, and the words behind its key.
pub(in crate::commands) fn creation(plan: &Plan) -> (&'static CStr, Vec<String>) {
    let (rate, keys) = (plan.rate.to_string(), plan.keys.to_string());
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    // What comes from a master without a seed is in RedisBloom's layout.
    match plan.form {
        Form::RedisBloom { growth: Some(growth) } => {
            (c"BF.RESERVE", own(&[&rate, &keys, "EXPANSION", &growth.to_string()]))
        }
        Form::RedisBloom { growth: None } => (c"BF.RESERVE", own(&[&rate, &keys, "NONSCALING"])),
        Form::RedisCuckoo { expansion, bucket_size, iterations } => {
            let (bucket_size, iterations) = (bucket_size.to_string(), iterations.to_string());
            let words = [
                &keys,
                "BUCKETSIZE",
                &bucket_size,
                "MAXITERATIONS",
                &iterations,
                "EXPANSION",
                &expansion.to_string(),
            ];
            (c"CF.RESERVE", own(&words))
        }
        _ => (c"PETAL.RESERVE", words(plan)),
    }
}

/// The words behind the key of `PETAL.RESERVE`.
fn words(plan: &Plan) -> Vec<String> {
    let mut words = vec![plan.rate.to_string(), plan.keys.to_string(), "TYPE".to_owned()];
    let mut more = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    match plan.form {
        Form::Bloom { growth: Some(growth) } => {
            more(&["bloom", "EXPANSION", &growth.factor.to_string()]);
            if growth.share > 0 {
                more(&["GROWTHSHARE", &growth.share.to_string()]);
            }
        }
        Form::Bloom { growth: None } => more(&["bloom", "NONSCALING"]),
        Form::Saturating => more(&["bloom", "NONSCALING", "SATURATE"]),
        Form::Counting => more(&["counting"]),
        // They have commands of their own.
        Form::RedisBloom { .. } | Form::RedisCuckoo { .. } => {}
        Form::Window { milliseconds, generations } => {
            match milliseconds {
                Some(time) => more(&["window", "WINDOW", &format!("{time}ms")]),
                None => more(&["window", "LAST"]),
            }
            more(&["GENERATIONS", &generations.to_string()]);
        }
        Form::Cuckoo { expansion, bucket_size, iterations } => {
            match expansion {
                0 => more(&["cuckoo", "NONSCALING"]),
                expansion => more(&["cuckoo", "EXPANSION", &expansion.to_string()]),
            }
            more(&["BUCKETSIZE", &bucket_size.to_string()]);
            more(&["MAXITERATIONS", &iterations.to_string()]);
        }
    }
    let seed: String = plan.seed.iter().map(|byte| format!("{byte:02x}")).collect();
    more(&["SEED", &seed]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Plan, Failure> {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        parse(&words, &Settings::now(), Reading::Strict, || [7; 16])
    }

    #[test]
    fn plans_become_words_and_plans() {
        let forms = [
            Form::Bloom { growth: None },
            Form::Bloom { growth: Some(Growth::by(1)) },
            Form::Bloom { growth: Some(Growth::by(32768)) },
            Form::Bloom { growth: Some(Growth { factor: 2, share: 2 }) },
            Form::Bloom { growth: Some(Growth { factor: 32768, share: 1 << 16 }) },
            Form::Saturating,
            Form::Counting,
            Form::Window { milliseconds: None, generations: 2 },
            Form::Window { milliseconds: Some(1), generations: 12 },
            Form::Window { milliseconds: Some(u64::MAX), generations: 4 },
            Form::Cuckoo { expansion: 0, bucket_size: 1, iterations: 1 },
            Form::Cuckoo { expansion: 32768, bucket_size: 255, iterations: u16::MAX },
        ];
        // What is told does not depend on what is usual.
        let usual = Settings {
            bf_expansion: 9,
            cf_expansion: 9,
            cf_bucket_size: 9,
            cf_max_iterations: 9,
            ..Settings::now()
        };
        let seeds = [[0; 16], [255; 16], std::array::from_fn(|at| at as u8)];
        for form in forms {
            for seed in seeds {
                for rate in [0.01, 1e-9, 1.0 / 3.0, f64::MIN_POSITIVE, 1.0 - f64::EPSILON] {
                    for keys in [1, 100, i64::MAX as u64] {
                        let plan = Plan { form, rate, keys, seed };
                        let words = words(&plan);
                        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
                        let none = || unreachable!("the seed is told");
                        let again = parse(&words, &usual, Reading::Accepted, none);
                        assert_eq!(again, Ok(plan), "{words:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn words_become_plans() {
        let plan = |line| parsed(line).map(|plan| plan.form);
        let bloom = |factor, share| Ok(Form::Bloom { growth: Some(Growth { factor, share }) });
        assert_eq!(plan("0.01 9"), bloom(2, 4));
        assert_eq!(plan("0.001 9 EXPANSION 4"), bloom(4, 64));
        assert_eq!(plan("0.001 9 GROWTHSHARE 3"), bloom(2, 3));
        // Logs of versions that knew no share are replayed to the filters that they had.
        let words = [&b"0.01"[..], b"9", b"EXPANSION", b"2"];
        let old = parse(&words, &Settings::now(), Reading::Accepted, || [7; 16]).unwrap();
        assert_eq!(old.form, Form::Bloom { growth: Some(Growth::by(2)) });
        assert_eq!(plan("0.01 9 nonscaling type BLOOM"), Ok(Form::Bloom { growth: None }));
        assert_eq!(plan("0.01 9 TYPE counting"), Ok(Form::Counting));
        let cuckoo = Form::Cuckoo { expansion: 1, bucket_size: 4, iterations: 20 };
        assert_eq!(plan("0.01 9 type cuckoo bucketsize 4"), Ok(cuckoo));
        let window = |milliseconds, generations| Ok(Form::Window { milliseconds, generations });
        assert_eq!(plan("0.01 9 TYPE window LAST"), window(None, 4));
        assert_eq!(plan("0.01 9 LAST GENERATIONS 12"), window(None, 12));
        assert_eq!(plan("0.01 9 window 7d"), window(Some(7 * 86_400_000), 4));
        let seed = "00112233445566778899aabbCCDDEEFF";
        let seeded = parsed(&format!("0.01 9 SEED {seed}")).unwrap();
        assert_eq!((seeded.seed[0], seeded.seed[1], seeded.seed[15]), (0, 0x11, 0xff));
    }

    #[test]
    fn a_time_to_live_is_taken_out_of_the_words() {
        let taken = |line: &'static str| {
            let mut words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
            take_time_to_live(&mut words).map(|time| (time, words.len()))
        };
        assert_eq!(taken("0.01 9 NONSCALING"), Ok((None, 3)));
        assert_eq!(taken("0.01 9 ttl 2s NONSCALING"), Ok((Some(2000), 3)));
        assert_eq!(taken("0.01 9 LAST TTL 1d"), Ok((Some(86_400_000), 3)));
        for wrong in ["0.01 9 TTL", "0.01 9 TTL 5", "0.01 9 TTL 0s", "0.01 9 TTL 999999999d"] {
            assert!(taken(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times() {
        let times = ["12h", "30m", "45s", "1500ms", "1d", "18446744073709551615ms"];
        let expect = [43_200_000, 1_800_000, 45_000, 1500, 86_400_000, u64::MAX];
        assert_eq!(times.map(|time| milliseconds(time.as_bytes())), expect.map(Some));
        for wrong in
            ["", "0", "7", "1500", "0d", "d", "7x", "7D", "-1s", "+1s", "1.5h", "1 s", "1ms "]
        {
            assert_eq!(milliseconds(wrong.as_bytes()), None, "{wrong}");
        }
        for large in ["18446744073709551616ms", "213503982335d"] {
            assert_eq!(milliseconds(large.as_bytes()), None, "{large}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let wrong = [
            "0 9",
            "1 9",
            "x 9",
            "0.01 0",
            "0.01 -1",
            "0.01 9 TYPE",
            "0.01 9 TYPE ribbon",
            "0.01 9 TYPE window",
            "0.01 9 GENERATIONS 4",
            "0.01 9 WINDOW 7d LAST",
            "0.01 9 WINDOW",
            "0.01 9 WINDOW 0",
            "0.01 9 LAST 9",
            "0.01 9 LAST GENERATIONS 1",
            "0.01 9 LAST GENERATIONS 13",
            "0.01 9 TYPE bloom LAST",
            "0.01 9 TYPE counting WINDOW 7d",
            "0.01 9 TYPE counting EXPANSION 2",
            "0.01 9 TYPE window LAST NONSCALING",
            "0.01 9 TYPE cuckoo LAST",
            "0.01 9 TYPE cuckoo EXPANSION 32769",
            "0.01 9 TYPE cuckoo BUCKETSIZE 0",
            "0.01 9 TYPE cuckoo BUCKETSIZE 256",
            "0.01 9 TYPE cuckoo MAXITERATIONS 65536",
            "0.01 9 BUCKETSIZE 2",
            "0.01 9 EXPANSION 0",
            "0.01 9 EXPANSION 2 NONSCALING",
            "0.01 9 GROWTHSHARE",
            "0.01 9 GROWTHSHARE 1",
            "0.01 9 GROWTHSHARE 65537",
            "0.01 9 NONSCALING GROWTHSHARE 4",
            "0.01 9 SATURATE",
            "0.01 9 TYPE cuckoo NONSCALING SATURATE",
            "0.01 9 TYPE cuckoo GROWTHSHARE 4",
            "0.01 9 SEED 00",
            "0.01 9 SEED +0112233445566778899aabbccddeeff",
            "0.01 9 SEED 00112233445566778899aabbccddeeffg",
        ];
        for line in wrong {
            assert!(matches!(parsed(line), Err(Failure::Says(_))), "{line}");
        }
    }
}
