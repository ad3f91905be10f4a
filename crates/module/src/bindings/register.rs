//! Registers the module with the server: data types, commands, settings, `INFO`.

use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;

use super::command_spec::{Arg, ArgKind, CommandSpec};
use super::{
    Call, Command, ReplayLoss, ReplyError, config, data_types, info, register_config, sketch_types,
};
use crate::server::abi::{self, Context, Text};
use crate::server::{api, c_string, warn};

/// The module's name.
const NAME: &CStr = c"petal";
/// The version of the module `bf`, which clients compare: 2.8.20, the release of RedisBloom whose
/// replies petal gives.
const REDISBLOOM_VERSION: c_int = 20820;

/// First version of petal with the commands.
const SINCE: &CStr = c"0.1.0";

/// A command for registration.
#[derive(Clone, Copy)]
pub(crate) struct CommandEntry {
    spec: &'static CommandSpec,
    run: abi::Run,
}

impl CommandEntry {
    pub(crate) const fn of<C: Command>() -> Self {
        Self { spec: &C::SPEC, run: run_command::<C> }
    }
}

/// Runs a command; replies with its error, and catches panics.
unsafe extern "C" fn run_command<C: Command>(
    context: *mut Context,
    args: *mut *mut Text,
    count: c_int,
) -> c_int {
    // SAFETY: the server passes its own context and arguments.
    let call = unsafe { Call::new(context, args, count) };
    let run = || {
        call.check_arity(const { C::SPEC.arity() })?;
        C::run(&call)
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            if C::REPLAY_LOSS != ReplayLoss::Nothing && call.is_replay() {
                call.replay_failed(C::REPLAY_LOSS, &error);
            }
            call.error(&error);
        }
        Err(_) => {
            warn(context, "a panic was caught; this is a bug");
            if !call.has_replied() {
                call.error(&ReplyError::Static(
                    "ERR internal error of petal; see the server's log",
                ));
            }
        }
    }
    abi::OK
}

pub(super) fn register_all(
    context: *mut Context,
    call: &Call<'_>,
    commands: &[CommandEntry],
) -> Result<(), String> {
    let args: Vec<_> = call.args_from(0).collect();
    let (name, version) = match config::is_named_bf(&args)? {
        true => (c"bf", REDISBLOOM_VERSION),
        false => (NAME, version()),
    };
    // SAFETY: the context is that of the loading module; the name is static.
    unsafe {
        if (api().is_module_name_busy)(name.as_ptr()) != 0 {
            return Err("a module of this name is already loaded".to_owned());
        }
        (api().set_module_attribs)(context, name.as_ptr(), version, abi::API_VERSION);
        let options =
            abi::HANDLE_IO_ERRORS | abi::HANDLE_REPL_ASYNC_LOAD | abi::NO_IMPLICIT_SIGNAL_MODIFIED;
        // The source sends the commands of an append-only file, then those that it replicates, and
        // the module keeps nothing about keys outside of their values.
        let supported = api().valkey_options.map_or(0, |all| all());
        let more = supported & abi::HANDLE_ATOMIC_SLOT_MIGRATION;
        (api().set_module_options)(context, options | more);
    }
    data_types::register(context)?;
    sketch_types::register(context);
    for category in [c"bloom", c"cuckoo", c"petal"] {
        if let Some(add) = api().add_acl_category {
            // SAFETY: as above. The call fails if the server has this category, which is fine.
            unsafe { add(context, category.as_ptr()) };
        }
    }
    for entry in commands {
        register_command(context, entry)?;
    }
    register_config::register(context)?;
    // Arguments of `loadmodule` override the defaults that the server has just set.
    config::apply_arguments(&args)?;
    // SAFETY: as above.
    unsafe { (api().register_info)(context, info::write_section) };
    Ok(())
}

/// Returns the crate's version as a number: 1.2.3 is 10203.
fn version() -> c_int {
    let numbers = env!("CARGO_PKG_VERSION").split('.');
    numbers.fold(0, |version, number| version * 100 + number.parse().unwrap_or(0))
}

fn register_command(context: *mut Context, entry: &CommandEntry) -> Result<(), String> {
    let CommandSpec { name, flags, keys, .. } = *entry.spec;
    let rejected = |what: &str| format!("the server rejects {what} of {}", name.to_string_lossy());
    let first = keys.first().map_or(0, |keys| keys.first);
    // The legacy key range covers all key specs: to the last argument if there are several.
    let last = match keys {
        [] => 0,
        [only] if only.last >= 0 => only.first + only.last,
        _ => -1,
    };
    // SAFETY: the context is that of the loading module; all strings are static or live until the
    // server has copied them.
    unsafe {
        let step = c_int::from(!keys.is_empty());
        // The server lists all command names in lower case.
        let lower = name.to_bytes().to_ascii_lowercase();
        let lower = CString::new(lower).map_err(|_| rejected("the name"))?;
        let flags = flags.as_ptr();
        if (api().create_command)(context, lower.as_ptr(), entry.run, flags, first, last, step)
            != abi::OK
        {
            return Err(rejected("the command") + ": is RedisBloom loaded too?");
        }
        let command = (api().get_command)(context, lower.as_ptr());
        if command.is_null() {
            return Err(rejected("the lookup"));
        }
        let mut arg_arrays = Vec::new();
        let args = abi_args(entry.spec.args, &mut arg_arrays);
        let key_specs = abi_key_specs(entry.spec);
        let info = abi::CommandInfo {
            version: &raw const abi::INFO_VERSION,
            summary: entry.spec.summary.as_ptr(),
            complexity: entry.spec.complexity.as_ptr(),
            since: SINCE.as_ptr(),
            history: null(),
            tips: null(),
            arity: entry.spec.arity(),
            key_specs: key_specs.as_ptr(),
            args,
        };
        if (api().set_command_info)(command, &raw const info) != abi::OK {
            return Err(rejected("the description"));
        }
        if let Some(set) = api().set_acl_categories {
            // This replaces the categories that the server derives from the flags.
            let flags = entry.spec.flags.to_string_lossy();
            let access = if flags.contains("readonly") { "read" } else { "write" };
            let speed = if flags.contains("fast") { "fast" } else { "slow" };
            let own = entry.spec.category();
            set(command, c_string(&format!("{own} {access} {speed}")).as_ptr());
        }
    }
    Ok(())
}

/// Returns the key specs, terminated by a spec of zeros.
fn abi_key_specs(spec: &CommandSpec) -> Vec<abi::KeySpec> {
    let key_spec = |flags, begin, at, find, last| abi::KeySpec {
        notes: null(),
        flags,
        begin,
        index: abi::Index { at, rest: [0; 3] },
        find,
        range: abi::Range { last, step: c_int::from(find > 0), limit: 0 },
    };
    let keys = spec.keys.iter();
    keys.map(|keys| key_spec(keys.flags, abi::BEGIN_INDEX, keys.first, abi::FIND_RANGE, keys.last))
        .chain([key_spec(0, 0, 0, 0, 0)])
        .collect()
}

/// Converts arguments to the server's structures. The returned array and all that it points to are
/// stored in `arrays`.
fn abi_args(args: &[Arg], arrays: &mut Vec<Vec<abi::Arg>>) -> *const abi::Arg {
    if args.is_empty() {
        return null();
    }
    let mut keys = 0;
    let mut array = Vec::with_capacity(args.len() + 1);
    for arg in args {
        let is_key = arg.kind == ArgKind::Key;
        array.push(abi::Arg {
            name: arg.name.as_ptr(),
            kind: arg.kind as c_int,
            key_spec: if is_key { keys } else { -1 },
            token: arg.token.map_or(null(), CStr::as_ptr),
            flags: c_int::from(arg.optional) | c_int::from(arg.multiple) << 1,
            parts: abi_args(arg.parts, arrays),
            ..abi::Arg::END
        });
        keys += c_int::from(is_key);
    }
    array.push(abi::Arg::END);
    // Moving the vector does not move its elements.
    let pointer = array.as_ptr();
    arrays.push(array);
    pointer
}
