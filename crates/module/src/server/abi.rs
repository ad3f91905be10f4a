//! Declarations of the server's module API: opaque types, functions, structures.
//!
//! Functions of all supported servers (Redis 7.0, Valkey 8) are required; the others are optional.
//! Source: the module API reference of both.

use std::ffi::{c_char, c_double, c_int, c_long, c_longlong, c_uint, c_void};
use std::ptr::null;

/// Declares opaque types of the server.
macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        #[derive(Debug)]
        pub(crate) struct $name([u8; 0]);
    )*};
}

opaque! { Context Text Key Type Io Digest Info Command KeyContext Defrag }

pub(crate) type Run = unsafe extern "C" fn(*mut Context, *mut *mut Text, c_int) -> c_int;

pub(crate) const OK: c_int = 0;
pub(crate) const ERR: c_int = 1;
pub(crate) const API_VERSION: c_int = 1;

pub(crate) const READ: c_int = 1;
pub(crate) const WRITE: c_int = 2;
pub(crate) const KEY_EMPTY: c_int = 0;

pub(crate) const FLAG_REPLICA: c_int = 1 << 3;
pub(crate) const FLAG_REPLICATED: c_int = 1 << 12;
pub(crate) const FLAG_LOADING: c_int = 1 << 13;
pub(crate) const FLAG_RESP3: c_int = 1 << 22;
pub(crate) const FLAG_ASYNC_LOADING: c_int = 1 << 23;

/// Read errors are returned to the caller instead of ending the server.
pub(crate) const HANDLE_IO_ERRORS: c_int = 1;
/// Opening a key for writing does not signal a change.
pub(crate) const NO_IMPLICIT_SIGNAL_MODIFIED: c_int = 1 << 1;
/// Data may be loaded from a master while the old data are served.
pub(crate) const HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;
/// Of Valkey: keys may be loaded from another node of a cluster before it hands over their slots.
pub(crate) const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

pub(crate) const NOTIFY_MODULE: c_int = 1 << 13;

/// Flag of a setting that `CONFIG SET` does not change.
pub(crate) const CONFIG_IMMUTABLE: c_uint = 1;
pub(crate) const CONFIG_MEMORY: c_uint = 1 << 7;
/// Of Redis 8: the name of the setting does not begin with that of the module.
pub(crate) const CONFIG_UNPREFIXED: c_uint = 1 << 9;

pub(crate) type GetNumber = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
pub(crate) type SetNumber =
    unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut Text) -> c_int;
pub(crate) type GetText = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut Text;
pub(crate) type SetText =
    unsafe extern "C" fn(*const c_char, *mut Text, *mut c_void, *mut *mut Text) -> c_int;
pub(crate) type GetChoice = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
pub(crate) type SetChoice =
    unsafe extern "C" fn(*const c_char, c_int, *mut c_void, *mut *mut Text) -> c_int;
/// Unused by this module.
pub(crate) type Apply = unsafe extern "C" fn(*mut Context, *mut c_void, *mut *mut Text) -> c_int;

/// Declares functions with their names in the server.
macro_rules! functions {
    (
        required { $($field:ident: $name:literal = fn($($arg:ty),* $(; $dots:tt)?) $(-> $out:ty)?,)* }
        optional { $($may:ident: $may_name:literal = fn($($may_arg:ty),*) $(-> $may_out:ty)?,)* }
    ) => {
        /// The server's functions.
        pub(crate) struct Api {
            $(pub(crate) $field: unsafe extern "C" fn($($arg),* $(, $dots)?) $(-> $out)?,)*
            $(pub(crate) $may: Option<unsafe extern "C" fn($($may_arg),*) $(-> $may_out)?>,)*
        }

        impl Api {
            /// Looks up all functions.
            ///
            /// # Errors
            /// The name of a required function that is missing.
            ///
            /// # Safety
            /// `find` must return, for each name, null or the function of that name.
            pub(crate) unsafe fn find(
                find: impl Fn(&'static std::ffi::CStr) -> *mut c_void,
            ) -> Result<Self, &'static std::ffi::CStr> {
                Ok(Self {
                    $($field: {
                        let function = find($name);
                        if function.is_null() {
                            return Err($name);
                        }
                        // SAFETY: the function of that name has this type.
                        unsafe { std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($arg),* $(, $dots)?) $(-> $out)?,
                        >(function) }
                    },)*
                    // SAFETY: as above; null is `None`.
                    $($may: unsafe { std::mem::transmute::<
                        *mut c_void,
                        Option<unsafe extern "C" fn($($may_arg),*) $(-> $may_out)?>,
                    >(find($may_name)) },)*
                })
            }
        }
    };
}

functions! {
    required {
        try_alloc: c"RedisModule_TryAlloc" = fn(usize) -> *mut c_void,
        free: c"RedisModule_Free" = fn(*mut c_void),
        set_module_attribs: c"RedisModule_SetModuleAttribs" = fn(*mut Context, *const c_char, c_int, c_int),
        set_module_options: c"RedisModule_SetModuleOptions" = fn(*mut Context, c_int),
        is_module_name_busy: c"RedisModule_IsModuleNameBusy" = fn(*const c_char) -> c_int,
        create_command: c"RedisModule_CreateCommand" = fn(*mut Context, *const c_char, Run, *const c_char, c_int, c_int, c_int) -> c_int,
        get_command: c"RedisModule_GetCommand" = fn(*mut Context, *const c_char) -> *mut Command,
        set_command_info: c"RedisModule_SetCommandInfo" = fn(*mut Command, *const CommandInfo) -> c_int,
        create_data_type: c"RedisModule_CreateDataType" = fn(*mut Context, *const c_char, c_int, *const TypeMethods) -> *mut Type,
        wrong_arity: c"RedisModule_WrongArity" = fn(*mut Context) -> c_int,
        reply_integer: c"RedisModule_ReplyWithLongLong" = fn(*mut Context, c_longlong) -> c_int,
        reply_bool: c"RedisModule_ReplyWithBool" = fn(*mut Context, c_int) -> c_int,
        reply_double: c"RedisModule_ReplyWithDouble" = fn(*mut Context, c_double) -> c_int,
        reply_error: c"RedisModule_ReplyWithError" = fn(*mut Context, *const c_char) -> c_int,
        reply_simple: c"RedisModule_ReplyWithSimpleString" = fn(*mut Context, *const c_char) -> c_int,
        reply_bytes: c"RedisModule_ReplyWithStringBuffer" = fn(*mut Context, *const c_char, usize) -> c_int,
        reply_array: c"RedisModule_ReplyWithArray" = fn(*mut Context, c_long) -> c_int,
        reply_map: c"RedisModule_ReplyWithMap" = fn(*mut Context, c_long) -> c_int,
        reply_null: c"RedisModule_ReplyWithNull" = fn(*mut Context) -> c_int,
        text_bytes: c"RedisModule_StringPtrLen" = fn(*const Text, *mut usize) -> *const c_char,
        create_text: c"RedisModule_CreateString" = fn(*mut Context, *const c_char, usize) -> *mut Text,
        free_text: c"RedisModule_FreeString" = fn(*mut Context, *mut Text),
        open_key: c"RedisModule_OpenKey" = fn(*mut Context, *mut Text, c_int) -> *mut Key,
        close_key: c"RedisModule_CloseKey" = fn(*mut Key),
        key_type: c"RedisModule_KeyType" = fn(*mut Key) -> c_int,
        set_abs_expire: c"RedisModule_SetAbsExpire" = fn(*mut Key, c_longlong) -> c_int,
        unlink_key: c"RedisModule_UnlinkKey" = fn(*mut Key) -> c_int,
        value_type: c"RedisModule_ModuleTypeGetType" = fn(*mut Key) -> *mut Type,
        value: c"RedisModule_ModuleTypeGetValue" = fn(*mut Key) -> *mut c_void,
        set_value: c"RedisModule_ModuleTypeSetValue" = fn(*mut Key, *mut Type, *mut c_void) -> c_int,
        replicate_verbatim: c"RedisModule_ReplicateVerbatim" = fn(*mut Context) -> c_int,
        replicate: c"RedisModule_Replicate" = fn(*mut Context, *const c_char, *const c_char; ...) -> c_int,
        signal_modified: c"RedisModule_SignalModifiedKey" = fn(*mut Context, *mut Text) -> c_int,
        notify: c"RedisModule_NotifyKeyspaceEvent" = fn(*mut Context, c_int, *const c_char, *mut Text) -> c_int,
        context_flags: c"RedisModule_GetContextFlags" = fn(*mut Context) -> c_int,
        milliseconds: c"RedisModule_Milliseconds" = fn() -> c_longlong,
        random_bytes: c"RedisModule_GetRandomBytes" = fn(*mut u8, usize),
        log: c"RedisModule_Log" = fn(*mut Context, *const c_char, *const c_char; ...),
        log_io_error: c"RedisModule_LogIOError" = fn(*mut Io, *const c_char, *const c_char; ...),
        io_failed: c"RedisModule_IsIOError" = fn(*mut Io) -> c_int,
        io_key: c"RedisModule_GetKeyNameFromIO" = fn(*mut Io) -> *const Text,
        save_unsigned: c"RedisModule_SaveUnsigned" = fn(*mut Io, u64),
        load_unsigned: c"RedisModule_LoadUnsigned" = fn(*mut Io) -> u64,
        save_double: c"RedisModule_SaveDouble" = fn(*mut Io, c_double),
        load_double: c"RedisModule_LoadDouble" = fn(*mut Io) -> c_double,
        save_bytes: c"RedisModule_SaveStringBuffer" = fn(*mut Io, *const c_char, usize),
        load_bytes: c"RedisModule_LoadStringBuffer" = fn(*mut Io, *mut usize) -> *mut c_char,
        emit_aof: c"RedisModule_EmitAOF" = fn(*mut Io, *const c_char, *const c_char; ...),
        digest_bytes: c"RedisModule_DigestAddStringBuffer" = fn(*mut Digest, *const c_char, usize),
        digest_end: c"RedisModule_DigestEndSequence" = fn(*mut Digest),
        register_info: c"RedisModule_RegisterInfoFunc" = fn(*mut Context, unsafe extern "C" fn(*mut Info, c_int)) -> c_int,
        info_section: c"RedisModule_InfoAddSection" = fn(*mut Info, *const c_char) -> c_int,
        info_number: c"RedisModule_InfoAddFieldULongLong" = fn(*mut Info, *const c_char, u64) -> c_int,
        register_number: c"RedisModule_RegisterNumericConfig" = fn(*mut Context, *const c_char, c_longlong, c_uint, c_longlong, c_longlong, GetNumber, SetNumber, Option<Apply>, *mut c_void) -> c_int,
        register_text: c"RedisModule_RegisterStringConfig" = fn(*mut Context, *const c_char, *const c_char, c_uint, GetText, SetText, Option<Apply>, *mut c_void) -> c_int,
        register_choice: c"RedisModule_RegisterEnumConfig" = fn(*mut Context, *const c_char, c_int, c_uint, *const *const c_char, *const c_int, c_int, GetChoice, SetChoice, Option<Apply>, *mut c_void) -> c_int,
        load_configs: c"RedisModule_LoadConfigs" = fn(*mut Context) -> c_int,
        defrag_alloc: c"RedisModule_DefragAlloc" = fn(*mut Defrag, *mut c_void) -> *mut c_void,
    }
    optional {
        try_calloc: c"RedisModule_TryCalloc" = fn(usize, usize) -> *mut c_void,
        add_acl_category: c"RedisModule_AddACLCategory" = fn(*mut Context, *const c_char) -> c_int,
        set_acl_categories: c"RedisModule_SetCommandACLCategories" = fn(*mut Command, *const c_char) -> c_int,
        server_version: c"RedisModule_GetServerVersion" = fn() -> c_int,
        valkey_options: c"ValkeyModule_GetModuleOptionsAll" = fn() -> c_int,
    }
}

/// The callbacks of a data type, version 4.
#[repr(C)]
pub(crate) struct TypeMethods {
    pub(crate) version: u64,
    pub(crate) rdb_load: Option<unsafe extern "C" fn(*mut Io, c_int) -> *mut c_void>,
    pub(crate) rdb_save: Option<unsafe extern "C" fn(*mut Io, *mut c_void)>,
    pub(crate) aof_rewrite: Option<unsafe extern "C" fn(*mut Io, *mut Text, *mut c_void)>,
    pub(crate) mem_usage: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    pub(crate) digest: Option<unsafe extern "C" fn(*mut Digest, *mut c_void)>,
    pub(crate) free: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) aux_load: Option<unsafe extern "C" fn(*mut Io, c_int, c_int) -> c_int>,
    pub(crate) aux_save: Option<unsafe extern "C" fn(*mut Io, c_int)>,
    pub(crate) aux_save_triggers: c_int,
    pub(crate) free_effort: Option<unsafe extern "C" fn(*mut Text, *const c_void) -> usize>,
    pub(crate) unlink: Option<unsafe extern "C" fn(*mut Text, *const c_void)>,
    pub(crate) copy:
        Option<unsafe extern "C" fn(*mut Text, *mut Text, *const c_void) -> *mut c_void>,
    pub(crate) defrag:
        Option<unsafe extern "C" fn(*mut Defrag, *mut Text, *mut *mut c_void) -> c_int>,
    pub(crate) mem_usage2:
        Option<unsafe extern "C" fn(*mut KeyContext, *const c_void, usize) -> usize>,
    pub(crate) free_effort2: Option<unsafe extern "C" fn(*mut KeyContext, *const c_void) -> usize>,
    pub(crate) unlink2: Option<unsafe extern "C" fn(*mut KeyContext, *const c_void)>,
    pub(crate) copy2: Option<unsafe extern "C" fn(*mut KeyContext, *const c_void) -> *mut c_void>,
}

pub(crate) const TYPE_METHODS: u64 = 4;

/// The description of a command.
#[repr(C)]
pub(crate) struct CommandInfo {
    pub(crate) version: *const InfoVersion,
    pub(crate) summary: *const c_char,
    pub(crate) complexity: *const c_char,
    pub(crate) since: *const c_char,
    pub(crate) history: *const HistoryEntry,
    pub(crate) tips: *const c_char,
    pub(crate) arity: c_int,
    pub(crate) key_specs: *const KeySpec,
    pub(crate) args: *const Arg,
}

#[repr(C)]
pub(crate) struct InfoVersion {
    pub(crate) version: c_int,
    pub(crate) history_entry: usize,
    pub(crate) key_spec: usize,
    pub(crate) arg: usize,
}

pub(crate) static INFO_VERSION: InfoVersion = InfoVersion {
    version: 1,
    history_entry: size_of::<HistoryEntry>(),
    key_spec: size_of::<KeySpec>(),
    arg: size_of::<Arg>(),
};

#[repr(C)]
pub(crate) struct HistoryEntry {
    pub(crate) since: *const c_char,
    pub(crate) changes: *const c_char,
}

/// A key spec: a start index and a range. Unused union members are zero.
#[repr(C)]
pub(crate) struct KeySpec {
    pub(crate) notes: *const c_char,
    pub(crate) flags: u64,
    pub(crate) begin: c_int,
    pub(crate) index: Index,
    pub(crate) find: c_int,
    pub(crate) range: Range,
}

/// Padded to the size of the other member of its union, a pointer and a number.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Index {
    pub(crate) at: c_int,
    pub(crate) rest: [c_int; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Range {
    pub(crate) last: c_int,
    pub(crate) step: c_int,
    pub(crate) limit: c_int,
}

pub(crate) const BEGIN_INDEX: c_int = 2;
pub(crate) const FIND_RANGE: c_int = 2;

/// The description of an argument.
#[repr(C)]
pub(crate) struct Arg {
    pub(crate) name: *const c_char,
    pub(crate) kind: c_int,
    pub(crate) key_spec: c_int,
    pub(crate) token: *const c_char,
    pub(crate) summary: *const c_char,
    pub(crate) since: *const c_char,
    pub(crate) flags: c_int,
    pub(crate) deprecated_since: *const c_char,
    pub(crate) parts: *const Arg,
    pub(crate) display: *const c_char,
}

impl Arg {
    /// The end of an array of arguments.
    pub(crate) const END: Self = Self {
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
    };
}
