//! Clients of object stores: kept for further objects, with timeouts and retries.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, ClientOptions, HeaderMap, HeaderValue, ObjectStore, RetryConfig,
};
use percent_encoding::percent_decode_str;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION};

use super::address::{ObjectUrl, Scheme};
use super::buckets::bucket_client;

/// An answer is given up if no byte arrives for this time.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A part of an upload must arrive within this time.
const PART_TIMEOUT: Duration = Duration::from_secs(600);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Stores that were opened, by scheme, bucket and purpose: their connections are used again.
static STORES: Mutex<Stores> = Mutex::new(BTreeMap::new());

type Stores = BTreeMap<(&'static str, String, bool), Arc<dyn ObjectStore>>;

/// Returns the store of a bucket, with credentials from the environment.
pub(super) fn bucket_store(
    scheme: Scheme,
    bucket: &str,
    uploads: bool,
) -> io::Result<Arc<dyn ObjectStore>> {
    let name = match scheme {
        Scheme::S3 => "s3",
        Scheme::Gs => "gs",
        _ => "az",
    };
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (name, bucket.to_owned(), uploads);
    if let Some(store) = stores.get(&key) {
        return Ok(Arc::clone(store));
    }
    let store = bucket_client(scheme, bucket, client_options(uploads), retries())?;
    stores.insert(key, Arc::clone(&store));
    Ok(store)
}

/// Returns the store of an address of the web. The address is the root of the store, so that its
/// query remains as it is.
pub(super) fn web_store(url: &ObjectUrl) -> io::Result<Arc<dyn ObjectStore>> {
    let (user, address) = url.user_and_url();
    let options = client_options(false).with_allow_http(url.scheme() == Scheme::Http);
    // A server must not compress parts of a file.
    let identity = HeaderValue::from_static("identity");
    let mut headers = HeaderMap::from_iter([(ACCEPT_ENCODING, identity)]);
    if let Some(user) = user {
        let mut value =
            HeaderValue::try_from(format!("Basic {}", encoded(user))).map_err(io::Error::other)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let store = HttpBuilder::new()
        .with_url(address)
        .with_client_options(options.with_default_headers(headers))
        .with_retry(retries())
        .build()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "is not an address; check it"))?;
    Ok(Arc::new(store))
}

fn client_options(uploads: bool) -> ClientOptions {
    let options = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT);
    if uploads {
        options.with_timeout(PART_TIMEOUT)
    } else {
        options.with_timeout_disabled().with_read_timeout(READ_TIMEOUT)
    }
}

/// Returns how failed requests are repeated. `AWS_MAX_ATTEMPTS` has the meaning of the AWS tools.
fn retries() -> RetryConfig {
    let attempts = std::env::var("AWS_MAX_ATTEMPTS").ok().and_then(|text| text.parse().ok());
    let default = RetryConfig::default();
    let max_retries = attempts.map_or(default.max_retries, |all: usize| all.saturating_sub(1));
    let (init_backoff, max_backoff) = (Duration::from_millis(200), Duration::from_secs(20));
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 3.0 };
    RetryConfig { max_retries, backoff, ..default }
}

/// Returns the credentials of basic authentication: user information in base64 (RFC 7617).
fn encoded(user: &str) -> String {
    BASE64_STANDARD.encode(percent_decode_str(user).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_is_decoded_and_encoded() {
        assert_eq!(encoded("Aladdin:open%20sesame"), "QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
