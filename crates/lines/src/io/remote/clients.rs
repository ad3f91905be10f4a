//! Clients of object stores: credentials from the environment, timeouts and retries.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, ClientOptions, Error, HeaderMap, HeaderValue, ObjectStore, RetryConfig,
};
use percent_encoding::percent_decode_str;
use reqwest::header::AUTHORIZATION;

use super::address::{ObjectUrl, Scheme};
use super::failure::Failure;

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
    let options = client_options(uploads);
    let store: Result<Arc<dyn ObjectStore>, Error> = match scheme {
        Scheme::S3 => s3(bucket, options)?.build().map(|store| Arc::new(store) as _),
        Scheme::Gs => GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(bucket)
            // Only for an emulator that the service account names.
            .with_client_options(options.with_allow_http(true))
            .with_retry(retries())
            .build()
            .map(|store| Arc::new(store) as _),
        _ => MicrosoftAzureBuilder::from_env()
            .with_container_name(bucket)
            .with_client_options(options)
            .with_retry(retries())
            .build()
            .map(|store| Arc::new(store) as _),
    };
    let store = store.map_err(|error| Failure::of(&error, scheme).into_io(bucket))?;
    stores.insert(key, Arc::clone(&store));
    Ok(store)
}

fn s3(bucket: &str, options: ClientOptions) -> io::Result<AmazonS3Builder> {
    use AmazonS3ConfigKey as Key;
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let value = |key| builder.get_config_value(&key);
    let credentials = [
        Key::AccessKeyId,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
        Key::MetadataEndpoint,
    ];
    let is_no = |text: &str| ["false", "f", "no", "n", "off", "0"].contains(&text);
    let skips = value(Key::SkipSignature).is_some_and(|text| !is_no(&text.to_ascii_lowercase()));
    if !skips && credentials.into_iter().all(|key| value(key).is_none()) && !has_metadata_service()
    {
        let text = "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or for a public \
                    bucket AWS_SKIP_SIGNATURE=true";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    // The user who names an endpoint with http:// wants it.
    let endpoints = [Key::Endpoint, Key::S3Endpoint];
    let is_plain = |key| value(key).is_some_and(|url| url.starts_with("http:"));
    let plain = endpoints.into_iter().any(is_plain);
    Ok(builder.with_client_options(options.with_allow_http(plain)).with_retry(retries()))
}

/// Returns whether the machine is one of AWS, whose metadata service has credentials. Requests to it
/// would be repeated for minutes elsewhere.
fn has_metadata_service() -> bool {
    let address = SocketAddr::from(([169, 254, 169, 254], 80));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// Returns the store of an address of the web. The address is the root of the store, so that its
/// query remains as it is.
pub(super) fn web_store(url: &ObjectUrl) -> io::Result<Arc<dyn ObjectStore>> {
    let (user, address) = url.user_and_url();
    let mut options = client_options(false).with_allow_http(url.scheme() == Scheme::Http);
    if let Some(user) = user {
        let mut value =
            HeaderValue::try_from(format!("Basic {}", encoded(user))).map_err(io::Error::other)?;
        value.set_sensitive(true);
        options = options.with_default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
    }
    let store = HttpBuilder::new()
        .with_url(address)
        .with_client_options(options)
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
