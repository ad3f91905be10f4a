//! `BF.RESERVE`, and the parameters of filters that `BF.*` creates.

use super::{EXPANSION, NONSCALING};
use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RW_INSERT, first_key};
use crate::bindings::config::{Layout, Settings};
use crate::bindings::{Call, Command, ReplayLoss, ReplyError};
use crate::commands::args::{Strictness, integer, is_option, is_token, positive};
use crate::commands::{bloom, memory_limit, replicate_creation};
use crate::error::FilterError;
use crate::filters::{FilterKind, FilterSpec, Growth};

/// The parameters of a new filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewBloom {
    pub(super) fpr: f64,
    pub(super) capacity: u64,
    /// Whether the command has the capacity; otherwise it is the default.
    pub(super) has_capacity: bool,
    pub(super) growth: Option<u64>,
    /// The key of the hash; random if `None`.
    pub(super) seed: Option<[u8; 16]>,
    /// Capacity that the filter must be able to grow to.
    pub(super) scale_to: Option<u64>,
}

impl NewBloom {
    pub(super) fn defaults(settings: &Settings) -> Self {
        Self {
            fpr: settings.bf_error_rate,
            capacity: settings.bf_initial_size,
            has_capacity: false,
            growth: Some(settings.bf_expansion).filter(|growth| *growth > 0),
            seed: None,
            scale_to: None,
        }
    }

    pub(super) fn spec(&self, call: &Call<'_>, settings: &Settings) -> FilterSpec {
        let (growth, fpr, capacity) = (self.growth, self.fpr, self.capacity);
        // A petal master replicates filters in petal's layout by PETAL.RESERVE, with the seed. This
        // command is from RedisBloom.
        if settings.layout == Layout::RedisBloom || call.is_replay() {
            return FilterSpec {
                kind: FilterKind::RedisBloom { growth },
                fpr,
                capacity,
                seed: [0; 16],
            };
        }
        let seed = self.seed.unwrap_or_else(|| call.random_key());
        let growth = growth.map(|factor| match self.has_capacity {
            true => Growth::from_capacity(factor, fpr),
            false => Growth::by(factor),
        });
        FilterSpec { kind: FilterKind::Bloom { growth }, fpr, capacity, seed }
    }

    /// Returns the specification with a first layer for all items of the command that creates the
    /// filter. `None` if the capacity is given or suffices, or the filter does not grow.
    pub(super) fn spec_for_items(&self, spec: &FilterSpec, items: usize) -> Option<FilterSpec> {
        let grows = matches!(spec.kind, FilterKind::Bloom { growth: Some(_) });
        let sized = grows && !self.has_capacity && items as u64 > self.capacity;
        sized.then(|| FilterSpec { capacity: items as u64, ..spec.clone() })
    }
}

pub(in crate::commands) struct Reserve;

impl Command for Reserve {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Filter;

    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.RESERVE",
        summary: c"Creates an empty Bloom filter",
        complexity: c"O(1)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_INSERT)],
        args: &[
            Arg::KEY,
            Arg::new(c"error_rate", ArgKind::Double),
            Arg::new(c"capacity", ArgKind::Integer),
            EXPANSION,
            NONSCALING,
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        if !(4..=7).contains(&call.len()) {
            return Err(ReplyError::WrongArity);
        }
        let strictness = Strictness::of(call);
        let fpr = parse_fpr(strictness, call.arg(2))?;
        let capacity = parse_capacity(call.arg(3))?;
        // RedisBloom looks for the first EXPANSION, and for NONSCALING among all arguments, the value
        // of EXPANSION too, before it parses that value.
        let mut options = call.args_from(4);
        let nonscaling = options.clone().any(|arg| is_option(arg, "NONSCALING"));
        let first = options.clone().position(|arg| is_option(arg, "EXPANSION"));
        let expansion = match first.map(|at| options.nth(at + 1)) {
            Some(None) => return Err(ReplyError::Static("ERR no expansion")),
            value => value.flatten(),
        };
        if nonscaling && expansion.is_some() {
            return Err(ReplyError::Static("Nonscaling filters cannot expand"));
        }
        let growth = expansion.map(parse_expansion).transpose()?;
        let is_value = |at: usize| first.is_some_and(|first| at == first + 1);
        let mut options = call.args_from(4).enumerate();
        if !strictness.ignores_unknown()
            && !options.all(|(at, arg)| is_value(at) || is_token(Self::SPEC.args, arg))
        {
            return Err(ReplyError::Static("ERR unknown argument received"));
        }
        let settings = Settings::current();
        let default = NewBloom::defaults(&settings).growth;
        let growth = if nonscaling { None } else { growth.or(default) };
        let mut key = call.open_write(1);
        if bloom(key.filter())?.is_some() {
            return Err(ReplyError::Static("ERR item exists"));
        }
        let new =
            NewBloom { fpr, capacity, growth, has_capacity: true, ..NewBloom::defaults(&settings) };
        let spec = new.spec(call, &settings);
        let filter = match spec.build(memory_limit(call, settings.memory_limit)) {
            // RedisBloom replicates BF.RESERVE even if it is out of memory. Its master has no such
            // key either, and creates one with default settings on the next BF.ADD.
            Err(FilterError::TooLarge) if call.is_replay() => {
                let error = FilterError::TooLarge.into();
                call.log_unchanged_key(&error);
                call.error(&error);
                return Ok(());
            }
            built => built?,
        };
        key.set(filter)?;
        replicate_creation(call, &spec);
        call.notify(c"bloom.reserve", 1);
        call.ok();
        Ok(())
    }
}

pub(in crate::commands) fn parse_fpr(
    strictness: Strictness,
    arg: &[u8],
) -> Result<f64, ReplyError> {
    let fpr = strictness.number(arg).ok_or(ReplyError::Static("ERR bad error rate"))?;
    if fpr > 0.0 && fpr < 1.0 {
        Ok(fpr)
    } else {
        Err(ReplyError::Static("ERR (0 < error rate range < 1) "))
    }
}

pub(in crate::commands) fn parse_capacity(arg: &[u8]) -> Result<u64, ReplyError> {
    let capacity = integer(arg).ok_or(ReplyError::Static("ERR bad capacity"))?;
    positive(capacity).ok_or(ReplyError::Static("ERR (capacity should be larger than 0)"))
}

pub(in crate::commands) fn parse_expansion(arg: &[u8]) -> Result<u64, ReplyError> {
    let growth = integer(arg).ok_or(ReplyError::Static("ERR bad expansion"))?;
    positive(growth).ok_or(ReplyError::Static("ERR expansion should be greater or equal to 1"))
}
