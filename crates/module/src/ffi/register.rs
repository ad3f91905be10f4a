//! Telling the server what the module has: types, commands, settings, a section of `INFO`.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::call::pointer;
use super::{Call, Command, Failure, Loses, NAME, types};
use crate::about::{About, Arg};
use crate::config::{self, Choice, Number, Rate};
use crate::metrics;
use crate::server::abi::{self, Context, Info, Text};
use crate::server::{api, bytes_of, c_string, held, warn};

/// The version of RedisBloom whose replies the module has, 2.8.20 as a number: what clients that
/// look for its name compare.
const REDISBLOOM: c_int = 20820;

/// A command as the server takes it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// What is told of it.
    pub(crate) about: &'static About,
    run: abi::Run,
}

impl Entry {
    /// The entry of a command.
    pub(crate) const fn of<C: Command>() -> Self {
        Self { about: &C::ABOUT, run: enter::<C> }
    }
}

/// Runs a command.
unsafe extern "C" fn enter<C: Command>(
    context: *mut Context,
    words: *mut *mut Text,
    count: c_int,
) -> c_int {
    // SAFETY: the server calls with its own.
    let call = unsafe { Call::new(context, words, count) };
    match catch_unwind(AssertUnwindSafe(|| C::run(&call))) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => {
            if C::LOSES != Loses::Nothing && call.is_replayed() {
                call.damage(C::LOSES, &failure);
            }
            call.failure(&failure);
        }
        Err(_) => {
            warn(context, "a panic was caught; this is a bug");
            if !call.has_replied() {
                call.failure(&Failure::Says(
                    "ERR internal error of petal; the server's log has more",
                ));
            }
        }
    }
    abi::OK
}

/// Registers all that there is.
pub(super) fn everything(
    context: *mut Context,
    call: &Call<'_>,
    commands: &[Entry],
) -> Result<(), String> {
    let words: Vec<_> = call.words_from(0).collect();
    let (name, version) = match config::is_named_bf(&words)? {
        true => (c"bf", REDISBLOOM),
        false => (NAME, version()),
    };
    // SAFETY: the context is that of the loading module; the name lives forever.
    unsafe {
        if (api().is_module_name_busy)(name.as_ptr()) != 0 {
            return Err("a module of this name is loaded".to_owned());
        }
        (api().set_module_attribs)(context, name.as_ptr(), version, abi::API_VERSION);
        let options =
            abi::HANDLE_IO_ERRORS | abi::HANDLE_REPL_ASYNC_LOAD | abi::NO_IMPLICIT_SIGNAL_MODIFIED;
        (api().set_module_options)(context, options);
    }
    types::register(context)?;
    for category in [c"bloom", c"cuckoo", c"petal"] {
        if let Some(add) = api().add_acl_category {
            // SAFETY: as above. It fails where the server has such a category, which is as good.
            unsafe { add(context, category.as_ptr()) };
        }
    }
    for entry in commands {
        command(context, entry)?;
    }
    settings(context)?;
    // Words behind `loadmodule` come after the defaults that the server has set.
    config::arguments(&words)?;
    // SAFETY: as above.
    unsafe { (api().register_info)(context, info) };
    Ok(())
}

/// The crate's version as a number: 1.2.3 is 10203.
fn version() -> c_int {
    let numbers = env!("CARGO_PKG_VERSION").split('.');
    numbers.fold(0, |version, number| version * 100 + number.parse().unwrap_or(0))
}

// ---- Commands -------------------------------------------------------------------------------------

fn command(context: *mut Context, entry: &Entry) -> Result<(), String> {
    let About { name, flags, keys, arity, .. } = *entry.about;
    let refused = |what: &str| format!("the server refuses {what} of {}", name.to_string_lossy());
    let first = keys.first().map_or(0, |keys| keys.first);
    // Several rows of keys are one to whoever knows no better: to the end.
    let last = match keys {
        [] => 0,
        [only] if only.last >= 0 => only.first + only.last,
        _ => -1,
    };
    // SAFETY: the context is that of the loading module; all strings live forever, or until the
    // server has copied them.
    unsafe {
        let step = c_int::from(!keys.is_empty());
        // In its own messages and lists the server has all names in lower case.
        let lower = name.to_bytes().to_ascii_lowercase();
        let lower = CString::new(lower).map_err(|_| refused("the name"))?;
        let flags = flags.as_ptr();
        if (api().create_command)(context, lower.as_ptr(), entry.run, flags, first, last, step)
            != abi::OK
        {
            return Err(refused("the command") + ": is RedisBloom loaded too?");
        }
        let command = (api().get_command)(context, lower.as_ptr());
        if command.is_null() {
            return Err(refused("to find the command"));
        }
        let mut rows = Vec::new();
        let args = described(entry.about.args, &mut rows);
        let specs = key_specs(entry.about);
        let info = abi::CommandInfo {
            version: &raw const abi::INFO_VERSION,
            summary: entry.about.summary.as_ptr(),
            complexity: entry.about.complexity.as_ptr(),
            since: entry.about.since.as_ptr(),
            history: null(),
            tips: null(),
            arity,
            key_specs: specs.as_ptr(),
            args,
        };
        if (api().set_command_info)(command, &raw const info) != abi::OK {
            return Err(refused("the description"));
        }
        if let Some(set) = api().set_acl_categories {
            // It takes the place of what the server makes of the flags.
            let words = entry.about.flags.to_string_lossy();
            let kind = if words.contains("readonly") { "read" } else { "write" };
            let speed = if words.contains("fast") { "fast" } else { "slow" };
            let own = entry.about.categories.to_string_lossy();
            set(command, c_string(&format!("{own} {kind} {speed}")).as_ptr());
        }
    }
    Ok(())
}

/// Where keys are; a row of zeros ends it.
fn key_specs(about: &About) -> Vec<abi::KeySpec> {
    let spec = |flags, begin, at, find, last| abi::KeySpec {
        notes: null(),
        flags,
        begin,
        index: abi::Index { at, rest: [0; 3] },
        find,
        range: abi::Range { last, step: c_int::from(find > 0), limit: 0 },
    };
    let keys = about.keys.iter();
    keys.map(|keys| spec(keys.flags, abi::BEGIN_INDEX, keys.first, abi::FIND_RANGE, keys.last))
        .chain([spec(0, 0, 0, 0, 0)])
        .collect()
}

/// Arguments as the server takes them; the rows that they point to are kept in `rows`.
fn described(args: &[Arg], rows: &mut Vec<Vec<abi::Arg>>) -> *const abi::Arg {
    if args.is_empty() {
        return null();
    }
    let mut keys = 0;
    let mut row = Vec::with_capacity(args.len() + 1);
    for arg in args {
        let parts = described(arg.parts, rows);
        let is_key = arg.kind == crate::about::ArgKind::Key;
        row.push(abi::Arg {
            name: arg.name.as_ptr(),
            kind: arg.kind as c_int,
            key_spec: if is_key { keys } else { -1 },
            token: pointer(arg.token),
            summary: null(),
            since: null(),
            flags: c_int::from(arg.optional) | c_int::from(arg.multiple) << 1,
            deprecated_since: null(),
            parts,
            display: null(),
        });
        keys += c_int::from(is_key);
    }
    row.push(abi::Arg {
        name: null(),
        kind: 0,
        key_spec: 0,
        token: null(),
        summary: null(),
        since: null(),
        flags: 0,
        deprecated_since: null(),
        parts: null(),
        display: null(),
    });
    // A row that is moved into the list keeps its place in memory.
    let begin = row.as_ptr();
    rows.push(row);
    begin
}

// ---- Settings -------------------------------------------------------------------------------------

fn settings(context: *mut Context) -> Result<(), String> {
    let refused =
        |name: &CStr| format!("the server refuses the setting {}", name.to_string_lossy());
    // SAFETY: the context is that of the loading module; names and values live forever.
    unsafe {
        for number in config::NUMBERS {
            let flags = if number.bytes { abi::CONFIG_MEMORY } else { 0 };
            let (least, most) = (*number.range.start(), *number.range.end());
            let value = (&raw const *number).cast_mut().cast();
            if (api().register_number)(
                context,
                number.name.as_ptr(),
                number.default,
                flags,
                least,
                most,
                get_number,
                set_number,
                None,
                value,
            ) != abi::OK
            {
                return Err(refused(number.name));
            }
        }
        for rate in config::RATES {
            let value = (&raw const *rate).cast_mut().cast();
            let (name, default) = (rate.name.as_ptr(), rate.default.as_ptr());
            if (api().register_text)(context, name, default, 0, get_rate, set_rate, None, value)
                != abi::OK
            {
                return Err(refused(rate.name));
            }
        }
        let choice = &config::LAYOUT;
        let words = choice.words.map(CStr::as_ptr);
        let numbers = [0, 1];
        if (api().register_choice)(
            context,
            choice.name.as_ptr(),
            0,
            0,
            words.as_ptr(),
            numbers.as_ptr(),
            2,
            get_choice,
            set_choice,
            None,
            (&raw const *choice).cast_mut().cast(),
        ) != abi::OK
        {
            return Err(refused(choice.name));
        }
        if (api().load_configs)(context) != abi::OK {
            return Err("the server refuses the settings".to_owned());
        }
    }
    Ok(())
}

unsafe extern "C" fn get_number(_: *const c_char, number: *mut c_void) -> c_longlong {
    // SAFETY: the setting that was registered with this function; so in all of these.
    unsafe { (*number.cast::<Number>()).value.load(Relaxed) }
}

unsafe extern "C" fn set_number(
    _: *const c_char,
    value: c_longlong,
    number: *mut c_void,
    _: *mut *mut Text,
) -> c_int {
    // SAFETY: as above. The server has looked whether it is in the range.
    unsafe { (*number.cast::<Number>()).value.store(value, Relaxed) };
    abi::OK
}

unsafe extern "C" fn get_choice(_: *const c_char, choice: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { (*choice.cast::<Choice>()).value.load(Relaxed) as c_int }
}

unsafe extern "C" fn set_choice(
    _: *const c_char,
    value: c_int,
    choice: *mut c_void,
    _: *mut *mut Text,
) -> c_int {
    // SAFETY: as above.
    unsafe { (*choice.cast::<Choice>()).value.store(value.into(), Relaxed) };
    abi::OK
}

/// The text that was last given for a rate: it is ours, and must live until the next is asked for.
static GIVEN: AtomicPtr<Text> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn get_rate(_: *const c_char, rate: *mut c_void) -> *mut Text {
    // SAFETY: as above; the server copies the bytes of a new text, which needs no context.
    unsafe {
        let text = (*rate.cast::<Rate>()).text();
        let made = (api().create_text)(std::ptr::null_mut(), text.as_ptr().cast(), text.len());
        let old = GIVEN.swap(made, Relaxed);
        if !old.is_null() {
            (api().free_text)(std::ptr::null_mut(), old);
        }
        made
    }
}

unsafe extern "C" fn set_rate(
    _: *const c_char,
    value: *mut Text,
    rate: *mut c_void,
    error: *mut *mut Text,
) -> c_int {
    // SAFETY: as above; the value lives for the call, and the server frees the error.
    unsafe {
        match (*rate.cast::<Rate>()).set(bytes_of(value)) {
            Ok(()) => abi::OK,
            Err(what) => {
                *error =
                    (api().create_text)(std::ptr::null_mut(), what.as_ptr().cast(), what.len());
                abi::ERR
            }
        }
    }
}

// ---- INFO -----------------------------------------------------------------------------------------

/// The section `petal`.
unsafe extern "C" fn info(info: *mut Info, _for_crash: c_int) {
    let now = [(c"filters", types::values()), (c"memory_bytes", held())];
    let counters = metrics::ALL.iter().map(|counter| (counter.name, counter.get()));
    // SAFETY: the server's own; names live forever.
    unsafe {
        if (api().info_section)(info, c"".as_ptr()) != abi::OK {
            return;
        }
        for (name, value) in now.into_iter().chain(counters) {
            (api().info_number)(info, name.as_ptr(), value);
        }
    }
}
