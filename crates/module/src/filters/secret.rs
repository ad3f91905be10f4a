//! The secret of imported filters whose files do not have it. It is in memory only: in no command, no file of
//! the server, and no payload.

use std::sync::{PoisonError, RwLock};

use petal::Secret;

static SECRET: RwLock<Option<Secret>> = RwLock::new(None);

/// Sets the secret of filters that are read from now on.
pub(crate) fn set(secret: Option<Secret>) {
    *SECRET.write().unwrap_or_else(PoisonError::into_inner) = secret;
}

/// Returns the secret.
pub(super) fn current() -> Option<Secret> {
    SECRET.read().unwrap_or_else(PoisonError::into_inner).clone()
}
