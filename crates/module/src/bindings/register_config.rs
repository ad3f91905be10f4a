//! Registers the settings with the server, and the callbacks that read and write them.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use super::config::{self, EnumSetting, FprSetting, IntSetting, SecretFile};
use crate::server::abi::{self, Context, Text};
use crate::server::{api, bytes_of};

/// The first version of Redis with [`abi::CONFIG_UNPREFIXED`]: 8.0.0, a byte for each number.
const UNPREFIXED_SINCE: c_int = 8 << 16;

/// Whether the settings get the values of the server's configuration file.
static LOADING: AtomicBool = AtomicBool::new(false);

/// Returns the flags under which a setting is registered: with the module's name before its own,
/// and, if RedisBloom and the server have it so, without.
fn name_flags(in_redisbloom: bool) -> impl Iterator<Item = c_uint> {
    // Valkey has other version numbers and no such flag.
    let is_redis = api().valkey_options.is_none();
    let version = api().server_version.map_or(0, |version| {
        // SAFETY: the function has no arguments.
        unsafe { version() }
    });
    let unprefixed = in_redisbloom && is_redis && version >= UNPREFIXED_SINCE;
    [0].into_iter().chain(unprefixed.then_some(abi::CONFIG_UNPREFIXED))
}

/// Registers all settings and loads the values of the server's configuration file.
pub(super) fn register(context: *mut Context) -> Result<(), String> {
    let rejected =
        |name: &CStr| format!("the server rejects the setting {}", name.to_string_lossy());
    // SAFETY: the context is that of the loading module; names and settings are static.
    unsafe {
        for setting in config::INTS {
            let unit = if setting.is_bytes { abi::CONFIG_MEMORY } else { 0 };
            let (min, max) = (*setting.range.start(), *setting.range.end());
            let data = (&raw const *setting).cast_mut().cast();
            for flags in name_flags(setting.in_redisbloom) {
                if (api().register_number)(
                    context,
                    setting.name.as_ptr(),
                    setting.default,
                    unit | flags,
                    min,
                    max,
                    get_int,
                    set_int,
                    None,
                    data,
                ) != abi::OK
                {
                    return Err(rejected(setting.name));
                }
            }
        }
        for setting in config::FPRS {
            let data = (&raw const *setting).cast_mut().cast();
            let (name, default) = (setting.name.as_ptr(), setting.default.as_ptr());
            for flags in name_flags(setting.in_redisbloom) {
                if (api().register_text)(
                    context, name, default, flags, get_fpr, set_fpr, None, data,
                ) != abi::OK
                {
                    return Err(rejected(setting.name));
                }
            }
        }
        let setting = &config::LAYOUT;
        let values = setting.values.map(CStr::as_ptr);
        let numbers = [0, 1];
        if (api().register_choice)(
            context,
            setting.name.as_ptr(),
            0,
            0,
            values.as_ptr(),
            numbers.as_ptr(),
            2,
            get_enum,
            set_enum,
            None,
            (&raw const *setting).cast_mut().cast(),
        ) != abi::OK
        {
            return Err(rejected(setting.name));
        }
        let setting = &config::SECRET_FILE;
        let (name, data) = (setting.name.as_ptr(), (&raw const *setting).cast_mut().cast());
        let (flags, none) = (abi::CONFIG_IMMUTABLE, c"".as_ptr());
        if (api().register_text)(
            context,
            name,
            none,
            flags,
            get_secret_file,
            set_secret_file,
            None,
            data,
        ) != abi::OK
        {
            return Err(rejected(setting.name));
        }
        LOADING.store(true, Relaxed);
        let loaded = (api().load_configs)(context);
        LOADING.store(false, Relaxed);
        if loaded != abi::OK {
            return Err("the server rejects the settings".to_owned());
        }
    }
    Ok(())
}

/// Returns whether the server sets the default because the file does not have this name of the
/// setting. It may have the other one, and the settings have their defaults already.
fn is_missing(is_default: bool) -> bool {
    is_default && LOADING.load(Relaxed)
}

unsafe extern "C" fn get_int(_: *const c_char, setting: *mut c_void) -> c_longlong {
    // SAFETY: the setting that was registered with this callback, here and below.
    unsafe { (*setting.cast::<IntSetting>()).value.load(Relaxed) }
}

unsafe extern "C" fn set_int(
    _: *const c_char,
    value: c_longlong,
    setting: *mut c_void,
    _: *mut *mut Text,
) -> c_int {
    // SAFETY: as above. The server has checked the range.
    let setting = unsafe { &*setting.cast::<IntSetting>() };
    if !is_missing(value == setting.default) {
        setting.value.store(value, Relaxed);
    }
    abi::OK
}

unsafe extern "C" fn get_enum(_: *const c_char, setting: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { (*setting.cast::<EnumSetting>()).value.load(Relaxed) as c_int }
}

unsafe extern "C" fn set_enum(
    _: *const c_char,
    value: c_int,
    setting: *mut c_void,
    _: *mut *mut Text,
) -> c_int {
    // SAFETY: as above.
    unsafe { (*setting.cast::<EnumSetting>()).value.store(value.into(), Relaxed) };
    abi::OK
}

/// The string that a setting returned last. The module owns it, and it must live until the next
/// call.
static LAST_TEXT: AtomicPtr<Text> = AtomicPtr::new(null_mut());

unsafe extern "C" fn get_fpr(_: *const c_char, setting: *mut c_void) -> *mut Text {
    // SAFETY: as above.
    returned(&unsafe { (*setting.cast::<FprSetting>()).text() })
}

unsafe extern "C" fn get_secret_file(_: *const c_char, setting: *mut c_void) -> *mut Text {
    // SAFETY: as above.
    returned(&unsafe { (*setting.cast::<SecretFile>()).text() })
}

/// Returns a text to the server.
fn returned(text: &str) -> *mut Text {
    // SAFETY: the server copies the bytes into a new string, which needs no context.
    unsafe {
        let new = (api().create_text)(null_mut(), text.as_ptr().cast(), text.len());
        let old = LAST_TEXT.swap(new, Relaxed);
        if !old.is_null() {
            (api().free_text)(null_mut(), old);
        }
        new
    }
}

unsafe extern "C" fn set_fpr(
    _: *const c_char,
    value: *mut Text,
    setting: *mut c_void,
    error: *mut *mut Text,
) -> c_int {
    // SAFETY: as above; the value lives during the call, and the server frees the error.
    unsafe {
        let (setting, value) = (&*setting.cast::<FprSetting>(), bytes_of(value));
        if is_missing(value == setting.default.to_bytes()) {
            return abi::OK;
        }
        outcome(setting.set(value), error)
    }
}

unsafe extern "C" fn set_secret_file(
    _: *const c_char,
    value: *mut Text,
    setting: *mut c_void,
    error: *mut *mut Text,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let set = (*setting.cast::<SecretFile>()).set(bytes_of(value));
        outcome(set.as_ref().map_err(String::as_str).copied(), error)
    }
}

/// Returns the status of a change, and its error.
///
/// # Safety
/// The server owns the place for the error.
unsafe fn outcome(changed: Result<(), &str>, error: *mut *mut Text) -> c_int {
    let Err(message) = changed else { return abi::OK };
    // SAFETY: as the caller promises; the server frees the error.
    unsafe { *error = (api().create_text)(null_mut(), message.as_ptr().cast(), message.len()) };
    abi::ERR
}
