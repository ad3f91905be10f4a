//! `PETAL.RESERVE`: creates a filter of any type that supports inserts. New filters in petal's
//! layout are also replicated by this command, so [`creation_command`] is the inverse of [`parse`].

use std::ffi::CStr;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RW_INSERT, first_key};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplayLoss, ReplicatedArg, ReplyError, WriteKey};
use crate::commands::args::CallOption::{Flag, Unknown, Value};
use crate::commands::args::{CallOptions, Strictness, integer_within, is_option};
use crate::commands::bf::{parse_capacity, parse_expansion, parse_fpr};
use crate::commands::{memory_limit, replicate_creation};
use crate::error::FilterError;
use crate::filters::{Clock, FilterKind, FilterSpec, Growth, MAX_EXPANSION};

/// Maximum time to live in milliseconds: a thousand years.
const MAX_TIME_TO_LIVE: u64 = 1000 * 366 * 86_400_000;
/// The `TTL` option of commands that create a filter.
pub(super) const TTL: Arg = Arg::new(c"time_to_live", ArgKind::Text).option(c"TTL");

pub(in crate::commands) struct Reserve;

impl Command for Reserve {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Filter;

    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.RESERVE",
        summary:
            c"Creates an empty filter. SATURATE: a filter of fixed size accepts items beyond its \
            capacity, at a higher error rate. GROWTHSHARE n: 1/n of the error rate is for the \
            layers after the first; default 4, or 8 for error rates below 0.05 %. WINDOW: items \
            expire after this time without a new insert (7d, 12h, 30m, 45s, 1500ms). LAST: the \
            window has as many items as the capacity. SEED: filters with the same seed, error \
            rate and capacity can be merged and compared; with a known seed an attacker can \
            create colliding items. BUCKETSIZE and MAXITERATIONS are only reported by CF.INFO. \
            TTL: the key expires after this time",
        complexity: c"O(1)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_INSERT)],
        args: &[
            Arg::KEY,
            Arg::new(c"error_rate", ArgKind::Double),
            Arg::new(c"capacity", ArgKind::Integer),
            Arg {
                token: Some(c"TYPE"),
                ..Arg::one_of(
                    c"type",
                    &[
                        Arg::token(c"bloom", c"bloom"),
                        Arg::token(c"counting", c"counting"),
                        Arg::token(c"window", c"window"),
                        Arg::token(c"cuckoo", c"cuckoo"),
                        Arg::token(c"vector_quotient", c"vector-quotient"),
                    ],
                )
            }
            .optional(),
            Arg::one_of(
                c"growth",
                &[
                    Arg::new(c"expansion", ArgKind::Integer).after(c"EXPANSION"),
                    Arg::token(c"nonscaling", c"NONSCALING"),
                ],
            )
            .optional(),
            Arg::flag(c"saturate", c"SATURATE"),
            Arg::new(c"growthshare", ArgKind::Integer).option(c"GROWTHSHARE"),
            Arg::one_of(
                c"extent",
                &[Arg::new(c"time", ArgKind::Text).after(c"WINDOW"), Arg::token(c"last", c"LAST")],
            )
            .optional(),
            Arg::new(c"generations", ArgKind::Integer).option(c"GENERATIONS"),
            Arg::new(c"bucketsize", ArgKind::Integer).option(c"BUCKETSIZE"),
            Arg::new(c"maxiterations", ArgKind::Integer).option(c"MAXITERATIONS"),
            Arg::new(c"seed", ArgKind::Text).option(c"SEED"),
            TTL,
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let new = NewFilter::parse(call, 2..call.len())?;
        let mut key = call.open_write(1);
        if key.filter().complete()?.is_some() {
            return Err(ReplyError::Static("ERR item exists"));
        }
        new.create(call, &mut key)?;
        call.ok();
        Ok(())
    }
}

/// The specification of a new filter and the time to live of its key.
pub(super) struct NewFilter {
    pub(super) spec: FilterSpec,
    /// Milliseconds; `None`: the key does not expire.
    time_to_live: Option<u64>,
}

impl NewFilter {
    /// Parses the error rate, the capacity and the options from these arguments of a call.
    pub(super) fn parse(call: &Call<'_>, range: Range<usize>) -> Result<Self, ReplyError> {
        let mut args: Vec<_> = range.map(|at| call.arg(at)).collect();
        let time_to_live = take_time_to_live(&mut args)?;
        let strictness = Strictness::of(call);
        let spec = parse(&args, &Settings::current(), strictness, || call.random_key())?;
        Ok(Self { spec, time_to_live })
    }

    /// Creates the filter in a missing key and replicates it.
    pub(super) fn create(&self, call: &Call<'_>, key: &mut WriteKey<'_>) -> Result<(), ReplyError> {
        let Self { spec, time_to_live } = self;
        key.set(spec.build(memory_limit(call, Settings::current().memory_limit))?)?;
        replicate_creation(call, spec);
        if let Some(time) = time_to_live {
            // An absolute time, so that replicas and logs expire the key at the same moment.
            let at = call.now().saturating_add(*time).min(i64::MAX as u64);
            key.expire_at(at)?;
            let at = at.to_string();
            call.replicate(
                c"PEXPIREAT",
                &[ReplicatedArg::FromCall(1), ReplicatedArg::Bytes(at.as_bytes())],
            );
        }
        let cuckoo = matches!(spec.kind, FilterKind::Cuckoo { .. });
        call.notify(if cuckoo { c"cuckoo.reserve" } else { c"bloom.reserve" }, 1);
        Ok(())
    }
}

/// Removes `TTL time` from the arguments. Returns the time in milliseconds.
fn take_time_to_live(args: &mut Vec<&[u8]>) -> Result<Option<u64>, ReplyError> {
    // After the error rate and the capacity. `TTL` is no valid value of another option.
    let Some(at) = args.iter().skip(2).position(|arg| is_option(arg, "TTL")) else {
        return Ok(None);
    };
    let at = at + 2;
    let value = *args.get(at + 1).ok_or(ReplyError::Static("ERR TTL needs a value"))?;
    args.drain(at..at + 2);
    parse_time("TTL", value, MAX_TIME_TO_LIVE).map(Some)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeOption {
    Bloom,
    Counting,
    VectorQuotient,
    Window,
    Cuckoo,
}

/// Parses the arguments after the key. `defaults` and `random` supply missing options.
fn parse(
    args: &[&[u8]],
    defaults: &Settings,
    strictness: Strictness,
    random: impl FnOnce() -> [u8; 16],
) -> Result<FilterSpec, ReplyError> {
    let [fpr, capacity, options @ ..] = args else { return Err(ReplyError::WrongArity) };
    let (fpr, capacity) = (parse_fpr(Strictness::Strict, fpr)?, parse_capacity(capacity)?);
    let options = Options::parse(options)?;
    options.check()?;
    let kind = options.kind(fpr, defaults, strictness)?;
    Ok(FilterSpec { kind, fpr, capacity, seed: options.seed.unwrap_or_else(random) })
}

/// The options of the command, as they were given.
#[derive(Default)]
struct Options {
    filter_type: Option<TypeOption>,
    expansion: Option<u64>,
    growth_share: Option<u64>,
    nonscaling: bool,
    saturate: bool,
    /// Milliseconds.
    window: Option<u64>,
    last: bool,
    generations: Option<u32>,
    bucket_size: Option<u16>,
    iterations: Option<u16>,
    seed: Option<[u8; 16]>,
}

impl Options {
    fn parse(args: &[&[u8]]) -> Result<Self, ReplyError> {
        let mut options = Self::default();
        // `take_time_to_live` has removed the last option of the specification.
        let spec = Reserve::SPEC.args.split_last().map_or(&[][..], |(_ttl, spec)| spec);
        let upper = <[u8]>::to_ascii_uppercase;
        for option in CallOptions::new(spec, args.iter().copied(), upper) {
            match option {
                Flag("SATURATE") => options.saturate = true,
                Flag("NONSCALING") => options.nonscaling = true,
                Flag("LAST") => options.last = true,
                Value("EXPANSION", None) => return Err(ReplyError::Static("ERR no expansion")),
                Value(name, None) => {
                    return Err(ReplyError::Message(format!("ERR {name} needs a value")));
                }
                Value("TYPE", Some(arg)) => options.filter_type = Some(parse_type(arg)?),
                Value("EXPANSION", Some(arg)) => options.expansion = Some(parse_expansion(arg)?),
                Value("WINDOW", Some(arg)) => {
                    options.window = Some(parse_time("WINDOW", arg, u64::MAX)?);
                }
                Value("SEED", Some(arg)) => {
                    let seed =
                        parse_seed(arg).ok_or(ReplyError::Static("ERR SEED is 32 hex digits"));
                    options.seed = Some(seed?);
                }
                Value(name @ "GROWTHSHARE", Some(arg)) => {
                    options.growth_share = Some(parse_number(name, arg, 2..=1 << 16)?);
                }
                Value(name @ "GENERATIONS", Some(arg)) => {
                    options.generations = Some(parse_number(name, arg, 2..=12)?);
                }
                Value(name @ "BUCKETSIZE", Some(arg)) => {
                    options.bucket_size = Some(parse_number(name, arg, 1..=255)?);
                }
                Value(name @ "MAXITERATIONS", Some(arg)) => {
                    options.iterations = Some(parse_number(name, arg, 1..=u16::MAX)?);
                }
                Flag(name) | Value(name, Some(_)) => return Err(unknown_option(name.as_bytes())),
                Unknown(arg) => return Err(unknown_option(arg)),
            }
        }
        Ok(options)
    }

    fn is_windowed(&self) -> bool {
        self.window.is_some() || self.last || self.generations.is_some()
    }

    fn filter_type(&self) -> TypeOption {
        let default = if self.is_windowed() { TypeOption::Window } else { TypeOption::Bloom };
        self.filter_type.unwrap_or(default)
    }

    /// Returns an error if an option is not one of the type, or excludes another.
    fn check(&self) -> Result<(), ReplyError> {
        let filter_type = self.filter_type();
        let (bloom, cuckoo) = (TypeOption::Bloom, TypeOption::Cuckoo);
        let of_growth = self.nonscaling || self.expansion.is_some();
        let of_cuckoo = self.bucket_size.is_some() || self.iterations.is_some();
        let grows = filter_type == bloom && !self.nonscaling;
        let problem = if self.is_windowed() && filter_type != TypeOption::Window {
            "ERR WINDOW, LAST and GENERATIONS are for TYPE window"
        } else if of_growth && ![bloom, cuckoo].contains(&filter_type) {
            "ERR EXPANSION and NONSCALING are for TYPE bloom or cuckoo"
        } else if of_cuckoo && filter_type != cuckoo {
            "ERR BUCKETSIZE and MAXITERATIONS are for TYPE cuckoo"
        } else if self.nonscaling && self.expansion.is_some() {
            "ERR EXPANSION and NONSCALING exclude each other"
        } else if self.growth_share.is_some() && !grows {
            "ERR GROWTHSHARE is for TYPE bloom that grows"
        } else if self.saturate && (!self.nonscaling || filter_type != bloom) {
            "ERR SATURATE is for TYPE bloom NONSCALING"
        } else if filter_type == TypeOption::Window && self.window.is_some() == self.last {
            "ERR a window needs either WINDOW with a time or LAST"
        } else {
            return Ok(());
        };
        Err(ReplyError::Static(problem))
    }

    /// Returns the kind of a filter with these options, which are valid.
    fn kind(
        &self,
        fpr: f64,
        defaults: &Settings,
        strictness: Strictness,
    ) -> Result<FilterKind, ReplyError> {
        Ok(match self.filter_type() {
            TypeOption::Cuckoo => {
                let growth = match self.nonscaling {
                    true => 0,
                    false => self.expansion.unwrap_or(defaults.cf_expansion),
                };
                let growth = u16::try_from(growth).ok().filter(|it| *it <= MAX_EXPANSION);
                FilterKind::Cuckoo {
                    expansion: growth.ok_or(FilterError::ExpansionTooLarge)?,
                    bucket_size: self.bucket_size.unwrap_or(defaults.cf_bucket_size as u16),
                    iterations: self.iterations.unwrap_or(defaults.cf_max_iterations as u16),
                }
            }
            TypeOption::Bloom if self.saturate => FilterKind::Saturating,
            TypeOption::Bloom if self.nonscaling => FilterKind::Bloom { growth: None },
            TypeOption::Bloom => {
                let default = Some(defaults.bf_expansion).filter(|factor| *factor > 0);
                let factor = self.expansion.or(default);
                let growth = factor.map(|factor| match (self.growth_share, strictness) {
                    (Some(share), _) => Growth { factor, share },
                    // Masters and logs have the share if the filter has one.
                    (None, Strictness::Lenient) => Growth::by(factor),
                    (None, Strictness::Strict) => Growth::from_capacity(factor, fpr),
                });
                FilterKind::Bloom { growth }
            }
            TypeOption::Counting => FilterKind::Counting,
            TypeOption::VectorQuotient => FilterKind::VectorQuotient,
            TypeOption::Window => FilterKind::Window {
                milliseconds: self.window,
                generations: self.generations.unwrap_or(petal::FilterSpec::GENERATIONS),
            },
        })
    }
}

/// Returns the error for an unknown option, which it shows printable and short.
fn unknown_option(arg: &[u8]) -> ReplyError {
    const MAX_BYTES: usize = 40;
    let dots = if arg.len() > MAX_BYTES { "..." } else { "" };
    let shown = arg[..arg.len().min(MAX_BYTES)].escape_ascii();
    ReplyError::Message(format!("ERR unknown option {shown}{dots}"))
}

/// Parses the number of an option.
fn parse_number<T: TryFrom<i64> + PartialOrd + Display>(
    name: &str,
    arg: &[u8],
    range: RangeInclusive<T>,
) -> Result<T, ReplyError> {
    integer_within(arg, &range).ok_or_else(|| {
        let (min, max) = (range.start(), range.end());
        ReplyError::Message(format!("ERR {name} is a number from {min} to {max}"))
    })
}

/// Parses the time of an option to milliseconds.
fn parse_time(name: &str, arg: &[u8], max: u64) -> Result<u64, ReplyError> {
    parse_duration(arg).filter(|time| *time <= max).ok_or_else(|| {
        let examples = "7d, 12h, 30m, 45s or 1500ms";
        ReplyError::Message(format!("ERR {name} is a time above 0 such as {examples}"))
    })
}

fn parse_type(arg: &[u8]) -> Result<TypeOption, ReplyError> {
    let types = [
        ("bloom", TypeOption::Bloom),
        ("counting", TypeOption::Counting),
        ("window", TypeOption::Window),
        ("cuckoo", TypeOption::Cuckoo),
        ("vector-quotient", TypeOption::VectorQuotient),
    ];
    let found = types.into_iter().find(|(name, _)| is_option(arg, name));
    let unknown =
        ReplyError::Static("ERR TYPE is bloom, counting, window, cuckoo or vector-quotient");
    found.map(|(_, filter_type)| filter_type).ok_or(unknown)
}

/// Parses a time above 0, an integer with a unit, to milliseconds.
fn parse_duration(arg: &[u8]) -> Option<u64> {
    let digits = arg.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = arg.split_at(digits);
    let factor = match unit {
        b"ms" => 1,
        b"s" => 1_000,
        b"m" => 60_000,
        b"h" => 3_600_000,
        b"d" => 86_400_000,
        _ => return None,
    };
    let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    number.checked_mul(factor).filter(|time| *time > 0)
}

/// Parses 32 hexadecimal digits.
fn parse_seed(digits: &[u8]) -> Option<[u8; 16]> {
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

/// Returns the command that creates an identical filter, and its arguments after the key, separated
/// by spaces.
pub(in crate::commands) fn creation_command(spec: &FilterSpec) -> (&'static CStr, String) {
    let FilterSpec { fpr, capacity, .. } = *spec;
    let options = match spec.kind {
        // A replayed command without a seed creates a filter in RedisBloom's layout.
        FilterKind::RedisBloom { growth: Some(growth) } => {
            return (c"BF.RESERVE", format!("{fpr} {capacity} EXPANSION {growth}"));
        }
        FilterKind::RedisBloom { growth: None } => {
            return (c"BF.RESERVE", format!("{fpr} {capacity} NONSCALING"));
        }
        FilterKind::RedisCuckoo { expansion, bucket_size, iterations } => {
            let buckets = format!("BUCKETSIZE {bucket_size} MAXITERATIONS {iterations}");
            return (c"CF.RESERVE", format!("{capacity} {buckets} EXPANSION {expansion}"));
        }
        FilterKind::Bloom { growth: Some(Growth { factor, share: 0 }) } => {
            format!("bloom EXPANSION {factor}")
        }
        FilterKind::Bloom { growth: Some(Growth { factor, share }) } => {
            format!("bloom EXPANSION {factor} GROWTHSHARE {share}")
        }
        FilterKind::Bloom { growth: None } => "bloom NONSCALING".to_owned(),
        FilterKind::Saturating => "bloom NONSCALING SATURATE".to_owned(),
        FilterKind::Counting => "counting".to_owned(),
        FilterKind::VectorQuotient => "vector-quotient".to_owned(),
        FilterKind::Window { milliseconds: Some(time), generations } => {
            format!("window WINDOW {time}ms GENERATIONS {generations}")
        }
        FilterKind::Window { milliseconds: None, generations } => {
            format!("window LAST GENERATIONS {generations}")
        }
        FilterKind::Cuckoo { expansion, bucket_size, iterations } => {
            let buckets = format!("BUCKETSIZE {bucket_size} MAXITERATIONS {iterations}");
            match expansion {
                0 => format!("cuckoo NONSCALING {buckets}"),
                expansion => format!("cuckoo EXPANSION {expansion} {buckets}"),
            }
        }
    };
    let seed: String = spec.seed.iter().map(|byte| format!("{byte:02x}")).collect();
    (c"PETAL.RESERVE", format!("{fpr} {capacity} TYPE {options} SEED {seed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<FilterSpec, ReplyError> {
        let args: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        parse(&args, &Settings::current(), Strictness::Strict, || [7; 16])
    }

    #[test]
    fn parse_inverts_creation_command() {
        let kinds = [
            FilterKind::Bloom { growth: None },
            FilterKind::Bloom { growth: Some(Growth::by(1)) },
            FilterKind::Bloom { growth: Some(Growth::by(32768)) },
            FilterKind::Bloom { growth: Some(Growth { factor: 2, share: 2 }) },
            FilterKind::Bloom { growth: Some(Growth { factor: 32768, share: 1 << 16 }) },
            FilterKind::Saturating,
            FilterKind::Counting,
            FilterKind::VectorQuotient,
            FilterKind::Window { milliseconds: None, generations: 2 },
            FilterKind::Window { milliseconds: Some(1), generations: 12 },
            FilterKind::Window { milliseconds: Some(u64::MAX), generations: 4 },
            FilterKind::Cuckoo { expansion: 0, bucket_size: 1, iterations: 1 },
            FilterKind::Cuckoo { expansion: 32768, bucket_size: 255, iterations: u16::MAX },
        ];
        // The arguments are complete: the result does not depend on the settings.
        let other_settings = Settings {
            bf_expansion: 9,
            cf_expansion: 9,
            cf_bucket_size: 9,
            cf_max_iterations: 9,
            ..Settings::current()
        };
        let seeds = [[0; 16], [255; 16], std::array::from_fn(|at| at as u8)];
        for kind in kinds {
            for seed in seeds {
                for fpr in [0.01, 1e-9, 1.0 / 3.0, f64::MIN_POSITIVE, 1.0 - f64::EPSILON] {
                    for capacity in [1, 100, i64::MAX as u64] {
                        let spec = FilterSpec { kind, fpr, capacity, seed };
                        let (_, args) = creation_command(&spec);
                        let args: Vec<_> = args.split(' ').map(str::as_bytes).collect();
                        let random = || unreachable!("the arguments have a seed");
                        let parsed = parse(&args, &other_settings, Strictness::Lenient, random);
                        assert_eq!(parsed, Ok(spec), "{args:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn options_are_parsed() {
        let kind = |line| parse_line(line).map(|spec| spec.kind);
        let bloom =
            |factor, share| Ok(FilterKind::Bloom { growth: Some(Growth { factor, share }) });
        assert_eq!(kind("0.01 9"), bloom(2, 4));
        assert_eq!(kind("0.001 9 EXPANSION 4"), bloom(4, 4));
        assert_eq!(kind("0.0001 9 EXPANSION 4"), bloom(4, 8));
        assert_eq!(kind("0.001 9 GROWTHSHARE 3"), bloom(2, 3));
        // Logs of versions without GROWTHSHARE give the same filters as before.
        let args = [&b"0.01"[..], b"9", b"EXPANSION", b"2"];
        let old = parse(&args, &Settings::current(), Strictness::Lenient, || [7; 16]).unwrap();
        assert_eq!(old.kind, FilterKind::Bloom { growth: Some(Growth::by(2)) });
        assert_eq!(kind("0.01 9 nonscaling type BLOOM"), Ok(FilterKind::Bloom { growth: None }));
        assert_eq!(kind("0.01 9 TYPE counting"), Ok(FilterKind::Counting));
        assert_eq!(kind("0.01 9 TYPE Vector-Quotient"), Ok(FilterKind::VectorQuotient));
        let cuckoo = FilterKind::Cuckoo { expansion: 1, bucket_size: 4, iterations: 20 };
        assert_eq!(kind("0.01 9 type cuckoo bucketsize 4"), Ok(cuckoo));
        let window =
            |milliseconds, generations| Ok(FilterKind::Window { milliseconds, generations });
        assert_eq!(kind("0.01 9 TYPE window LAST"), window(None, 4));
        assert_eq!(kind("0.01 9 LAST GENERATIONS 12"), window(None, 12));
        assert_eq!(kind("0.01 9 window 7d"), window(Some(7 * 86_400_000), 4));
        let seed = "00112233445566778899aabbCCDDEEFF";
        let seeded = parse_line(&format!("0.01 9 SEED {seed}")).unwrap();
        assert_eq!((seeded.seed[0], seeded.seed[1], seeded.seed[15]), (0, 0x11, 0xff));
    }

    #[test]
    fn time_to_live_is_removed_from_the_arguments() {
        let take = |line: &'static str| {
            let mut args: Vec<_> = line.split(' ').map(str::as_bytes).collect();
            take_time_to_live(&mut args).map(|time| (time, args.len()))
        };
        assert_eq!(take("0.01 9 NONSCALING"), Ok((None, 3)));
        assert_eq!(take("0.01 9 ttl 2s NONSCALING"), Ok((Some(2000), 3)));
        assert_eq!(take("0.01 9 LAST TTL 1d"), Ok((Some(86_400_000), 3)));
        for wrong in ["0.01 9 TTL", "0.01 9 TTL 5", "0.01 9 TTL 0s", "0.01 9 TTL 999999999d"] {
            assert!(take(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_parsed() {
        let times = ["12h", "30m", "45s", "1500ms", "1d", "18446744073709551615ms"];
        let expect = [43_200_000, 1_800_000, 45_000, 1500, 86_400_000, u64::MAX];
        assert_eq!(times.map(|time| parse_duration(time.as_bytes())), expect.map(Some));
        for wrong in
            ["", "0", "7", "1500", "0d", "d", "7x", "7D", "-1s", "+1s", "1.5h", "1 s", "1ms "]
        {
            assert_eq!(parse_duration(wrong.as_bytes()), None, "{wrong}");
        }
        for large in ["18446744073709551616ms", "213503982335d"] {
            assert_eq!(parse_duration(large.as_bytes()), None, "{large}");
        }
    }

    #[test]
    fn invalid_options_are_errors() {
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
            "0.01 9 LAST GENERATIONS 1",
            "0.01 9 LAST GENERATIONS 13",
            "0.01 9 TYPE bloom LAST",
            "0.01 9 TYPE counting WINDOW 7d",
            "0.01 9 TYPE counting EXPANSION 2",
            "0.01 9 TYPE vector-quotient NONSCALING",
            "0.01 9 TYPE vector-quotient LAST",
            "0.01 9 TYPE window LAST NONSCALING",
            "0.01 9 TYPE cuckoo LAST",
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
            assert!(parse_line(line).is_err(), "{line}");
        }
        let long = format!("0.01 9 {}", "x".repeat(50));
        for (line, expected) in [
            ("0.01 9 TYPE cuckoo EXPANSION 32769", "ERR EXPANSION is at most 32768"),
            ("0.01 9 FOO", "ERR unknown option FOO"),
            ("0.01 9 LAST 9", "ERR unknown option 9"),
            // A second TTL; the first was removed.
            ("0.01 9 LAST ttl 5s", "ERR unknown option ttl"),
            ("0.01 9 NONSCALING f\"\r\n 3", "ERR unknown option f\\\"\\r\\n"),
            (&long, "ERR unknown option xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."),
        ] {
            assert_eq!(parse_line(line), Err(ReplyError::Message(expected.to_owned())), "{line}");
        }
    }
}
