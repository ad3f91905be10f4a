//! Clients of buckets and containers: their settings and credentials, from the environment.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ClientOptions, ObjectStore, Result, RetryConfig};

use super::address::Scheme;
use super::failure::Failure;

/// Returns a client of a bucket, or of a container of Azure.
pub(super) fn bucket_client(
    scheme: Scheme,
    bucket: &str,
    options: ClientOptions,
    retries: RetryConfig,
) -> io::Result<Arc<dyn ObjectStore>> {
    let client: Result<Arc<dyn ObjectStore>> = match scheme {
        Scheme::S3 => {
            let builder = s3(options)?.with_bucket_name(bucket).with_retry(retries);
            builder.build().map(|client| Arc::new(client) as _)
        }
        Scheme::Gs => {
            let builder = google(options)?.with_bucket_name(bucket).with_retry(retries);
            builder.build().map(|client| Arc::new(client) as _)
        }
        _ => {
            let builder = azure(options)?.with_container_name(bucket).with_retry(retries);
            builder.build().map(|client| Arc::new(client) as _)
        }
    };
    client.map_err(|error| Failure::of_settings(&error, scheme).into_io(bucket))
}

/// Returns whether a variable with a truth value is set and true.
fn is_true(value: Option<String>) -> bool {
    let no = ["false", "f", "no", "n", "off", "0"];
    value.is_some_and(|text| !no.contains(&text.to_ascii_lowercase().as_str()))
}

/// Returns whether an endpoint is an address without encryption: the user who names it wants it.
fn is_plain(endpoint: Option<String>) -> bool {
    endpoint.is_some_and(|url| url.starts_with("http:"))
}

fn no_credentials(remedy: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("no credentials; set {remedy}"))
}

fn s3(options: ClientOptions) -> io::Result<AmazonS3Builder> {
    use AmazonS3ConfigKey as Key;
    let builder = AmazonS3Builder::from_env();
    let value = |key| builder.get_config_value(&key);
    let credentials = [
        Key::AccessKeyId,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
        Key::MetadataEndpoint,
    ];
    let has_some = credentials.into_iter().any(|key| value(key).is_some());
    if !has_some && !is_true(value(Key::SkipSignature)) && !has_metadata_service() {
        return Err(no_credentials(
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or for a public bucket \
             AWS_SKIP_SIGNATURE=true",
        ));
    }
    let plain = [Key::Endpoint, Key::S3Endpoint].into_iter().any(|key| is_plain(value(key)));
    Ok(builder.with_client_options(options.with_allow_http(plain)))
}

fn google(options: ClientOptions) -> io::Result<GoogleCloudStorageBuilder> {
    use GoogleConfigKey as Key;
    let builder = GoogleCloudStorageBuilder::from_env();
    let value = |key| builder.get_config_value(&key);
    let credentials = [
        Key::ServiceAccount,
        Key::ServiceAccountKey,
        Key::ApplicationCredentials,
        Key::BearerToken,
    ];
    let has_some = credentials.into_iter().any(|key| value(key).is_some());
    let skips = is_true(value(Key::SkipSignature));
    if !has_some && !skips && !has_google_login() && !has_metadata_service() {
        return Err(no_credentials(
            "GOOGLE_APPLICATION_CREDENTIALS, or for a public bucket GOOGLE_SKIP_SIGNATURE=true",
        ));
    }
    // A service account can name an emulator, too.
    Ok(builder.with_client_options(options.with_allow_http(true)))
}

/// Returns whether there is the file of `gcloud auth application-default login`.
fn has_google_login() -> bool {
    let (home, file) = if cfg!(windows) {
        ("APPDATA", "gcloud/application_default_credentials.json")
    } else {
        ("HOME", ".config/gcloud/application_default_credentials.json")
    };
    std::env::var_os(home).is_some_and(|home| std::path::Path::new(&home).join(file).exists())
}

fn azure(options: ClientOptions) -> io::Result<MicrosoftAzureBuilder> {
    use AzureConfigKey as Key;
    let builder = MicrosoftAzureBuilder::from_env();
    let value = |key| builder.get_config_value(&key);
    // An emulator has an account and a key that are known.
    let emulator = is_true(value(Key::UseEmulator));
    if !emulator && value(Key::AccountName).is_none() {
        let text = "no storage account; set AZURE_STORAGE_ACCOUNT_NAME";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let credentials = [
        Key::AccessKey,
        Key::SasKey,
        Key::Token,
        Key::ClientId,
        Key::MsiEndpoint,
        Key::FabricTokenServiceUrl,
    ];
    let has_some = credentials.into_iter().any(|key| value(key).is_some());
    let is_set = [Key::UseAzureCli, Key::SkipSignature].into_iter().any(|key| is_true(value(key)));
    if !emulator && !has_some && !is_set && !has_metadata_service() {
        return Err(no_credentials(
            "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or for a public container \
             AZURE_SKIP_SIGNATURE=true",
        ));
    }
    let plain = is_plain(value(Key::Endpoint));
    Ok(builder.with_client_options(options.with_allow_http(plain)))
}

/// Returns whether the machine is one of a cloud, whose metadata service has credentials: that of AWS,
/// Google and Azure has the same address. Requests to it would be repeated for minutes elsewhere.
fn has_metadata_service() -> bool {
    let address = SocketAddr::from(([169, 254, 169, 254], 80));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_values_are_those_of_the_tools() {
        for text in ["false", "FALSE", "0", "no", "off"] {
            assert!(!is_true(Some(text.to_owned())), "{text}");
        }
        assert!(is_true(Some("true".to_owned())) && is_true(Some("1".to_owned())));
        assert!(!is_true(None));
    }

    #[test]
    fn only_http_is_plain() {
        assert!(is_plain(Some("http://127.0.0.1:9000".to_owned())));
        assert!(!is_plain(Some("https://example.org".to_owned())) && !is_plain(None));
    }
}
