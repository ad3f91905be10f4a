//! Errors of requests, in words.
//!
//! The texts of `object_store` contain addresses with their query, which may be a signature, and
//! the bodies of answers. None of them is shown: only the status, the code that S3, Google and
//! Azure put into the body, and the innermost cause.

use std::error::Error as StdError;
use std::io;

use object_store::client::{HttpError, HttpErrorKind};

use super::address::Scheme;
use crate::error::Error;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The object is not the one that was opened.
    Changed(&'static str),
    /// Another reason: its kind, and a text that ends with what to do.
    Other(io::ErrorKind, String),
}

/// The change of an object that was replaced.
pub(super) const OTHER_ETAG: &str = "its ETag is not what it was";

/// How the texts of `object_store` begin about a server that ignores ranges, and about one that sends
/// another part of a file or one without a length.
const WHOLE_FILE: &str = "range request not supported";
const WRONG_PARTS: [&str; 2] = ["requested ", "content-length "];

impl Failure {
    /// Converts an error of `object_store`.
    pub(super) fn of(error: &object_store::Error, scheme: Scheme) -> Self {
        let answer = Answer::of(error);
        let (status, code) = (answer.status, answer.code.as_deref().unwrap_or(""));
        let shown = match status {
            Some(status) if code.is_empty() => format!("status {status}"),
            Some(status) => format!("status {status} ({code})"),
            None => answer.cause.clone(),
        };
        let other = |kind, text: &str| Self::Other(kind, format!("{shown}; {text}"));
        match (status, code) {
            (Some(412), _) => Self::Changed(OTHER_ETAG),
            (_, "NoSuchBucket") => other(io::ErrorKind::NotFound, "check the name of the bucket"),
            (_, "ContainerNotFound") => {
                other(io::ErrorKind::NotFound, "check the name of the container")
            }
            (Some(404), _) => other(io::ErrorKind::NotFound, address_advice(scheme)),
            (Some(401 | 403), _) => {
                other(io::ErrorKind::PermissionDenied, credentials_advice(scheme))
            }
            (Some(400), _) if answer.is_token => {
                other(io::ErrorKind::PermissionDenied, credentials_advice(scheme))
            }
            (Some(301 | 307 | 308), _) if scheme == Scheme::S3 => {
                other(io::ErrorKind::Other, "set AWS_REGION to the region of the bucket")
            }
            (Some(408 | 425 | 429 | 500..), _) => {
                other(io::ErrorKind::Other, "the server failed repeatedly; try again later")
            }
            (Some(_), _) => other(io::ErrorKind::Other, "the server refuses the request"),
            (None, _) if answer.cause.contains("certificate") => other(
                io::ErrorKind::Other,
                "its certificate is not trusted; SSL_CERT_FILE names a file with other authorities",
            ),
            (None, _) if answer.is_transport => {
                other(io::ErrorKind::Other, "check the address and the network, or try again later")
            }
            (None, _) if answer.cause.starts_with(WHOLE_FILE) => {
                let text = "the server sends whole files, not parts of them; download it first";
                Self::Other(io::ErrorKind::Other, text.to_owned())
            }
            (None, _) if WRONG_PARTS.iter().any(|start| answer.cause.starts_with(start)) => {
                other(io::ErrorKind::Other, "the server sends no such part; download it first")
            }
            (None, _) => Self::Other(io::ErrorKind::Other, shown),
        }
    }

    /// Converts an error of settings, before any request. Their texts are not shown: they may quote
    /// parts of a credential. Only a file that cannot be read has a reason.
    pub(super) fn of_settings(error: &object_store::Error, scheme: Scheme) -> Self {
        let mut current: &(dyn StdError + 'static) = error;
        while let Some(source) = current.source() {
            current = source;
        }
        let reason = match current.downcast_ref::<io::Error>() {
            Some(error) => {
                format!("the file of credentials cannot be read: {}", cause(&error.to_string()))
            }
            None => "the credentials in the environment are malformed".to_owned(),
        };
        Self::Other(
            io::ErrorKind::InvalidInput,
            format!("{reason}; {}", credentials_advice(scheme)),
        )
    }

    /// Returns whether an error of reading means that nothing can be written either: no container,
    /// other credentials, or no connection.
    pub(super) fn prevents_writing(error: &object_store::Error) -> bool {
        let answer = Answer::of(error);
        let is_refused = |code: &str| ["ContainerNotFound", "AuthenticationFailed"].contains(&code);
        answer.is_transport || answer.code.as_deref().is_some_and(is_refused)
    }

    /// Returns whether a request of a range may have failed because the server knows no ranges, or
    /// because the object is empty.
    pub(super) fn may_lack_ranges(error: &object_store::Error) -> bool {
        let answer = Answer::of(error);
        !answer.is_transport && matches!(answer.status, None | Some(416))
    }

    /// Returns the error of reading the input of this name.
    pub(super) fn into_io(self, name: &str) -> io::Error {
        match self {
            Self::Changed(change) => io::Error::other(Error::changed(name, change)),
            Self::Other(kind, text) => io::Error::new(kind, text),
        }
    }
}

fn address_advice(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 | Scheme::Gs => "check bucket and key",
        Scheme::Az => "check container and key",
        Scheme::Https | Scheme::Http => "check the address",
    }
}

fn credentials_advice(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => {
            "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of the user; \
             AWS_SKIP_SIGNATURE=true is for public buckets"
        }
        Scheme::Gs => {
            "check GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, and the rights of the \
             account; GOOGLE_SKIP_SIGNATURE=true is for public buckets"
        }
        Scheme::Az => {
            "check AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY or \
             AZURE_STORAGE_SAS_TOKEN, and the rights of the user"
        }
        Scheme::Https | Scheme::Http => {
            "the server wants other credentials, or the link has expired"
        }
    }
}

/// What is known about a failed request.
#[derive(Default)]
struct Answer {
    status: Option<u16>,
    code: Option<String>,
    /// The innermost cause.
    cause: String,
    /// Whether no answer arrived.
    is_transport: bool,
    /// Whether the request was for a token, with credentials of a user or an account.
    is_token: bool,
}

impl Answer {
    fn of(error: &object_store::Error) -> Self {
        let mut answer = Self::default();
        let mut current: &(dyn StdError + 'static) = error;
        loop {
            let text = current.to_string();
            answer.status = answer.status.or_else(|| status_in(&text));
            answer.code = answer.code.take().or_else(|| code_in(&text));
            answer.is_token |= text.contains("token request");
            if let Some(error) = current.downcast_ref::<HttpError>() {
                answer.is_transport = true;
                if error.kind() == HttpErrorKind::Timeout {
                    answer.cause = "no answer in time".to_owned();
                    return answer;
                }
            }
            let Some(source) = current.source() else {
                // What quotes a part of an answer may quote a token.
                let quotes = !answer.is_transport && text.contains(['"', '`']);
                answer.cause = cause(if quotes { "the answer is malformed" } else { &text });
                break;
            };
            current = source;
        }
        answer.status = answer.status.or(match error {
            object_store::Error::NotFound { .. } => Some(404),
            object_store::Error::Precondition { .. } => Some(412),
            object_store::Error::PermissionDenied { .. } => Some(403),
            object_store::Error::Unauthenticated { .. } => Some(401),
            _ => None,
        });
        answer
    }
}

/// Returns the status in "… status code: 403 Forbidden: …".
fn status_in(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// Returns the code of an error in XML: `<Code>NoSuchKey</Code>`.
fn code_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let plain = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| code.to_owned())
}

/// Returns a cause without addresses and without Rust's `(os error N)`.
fn cause(text: &str) -> String {
    let text = text.split_once(" (os error").map_or(text, |(text, _)| text);
    if text.contains("://") || text.len() > 200 || text.contains('\n') {
        return "the request failed".to_owned();
    }
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_code_are_found() {
        let text = "Server returned non-2xx status code: 404 Not Found: <?xml version=\"1.0\"?>\
                    <Error><Code>NoSuchBucket</Code><Message>SECRET</Message></Error>";
        assert_eq!(status_in(text), Some(404));
        assert_eq!(code_in(text).as_deref(), Some("NoSuchBucket"));
        assert_eq!(status_in("status code: "), None);
        assert_eq!(code_in("<Code>http://h/?SECRET</Code>"), None);
        assert_eq!(cause("error for http://h/?SECRET"), "the request failed");
        assert_eq!(cause("Connection refused (os error 111)"), "connection refused");
    }

    fn generic(text: &'static str) -> object_store::Error {
        object_store::Error::Generic { store: "test", source: text.into() }
    }

    /// Returns the text of a failure.
    fn text(failure: Failure) -> String {
        failure.into_io("x").to_string()
    }

    #[test]
    fn quoted_parts_of_credentials_are_not_shown() {
        let error = generic("invalid type: string \"SECRET\", expected a map");
        let found = text(Failure::of_settings(&error, Scheme::Gs));
        assert!(
            found.starts_with("the credentials in the environment are malformed; check GOOGLE_")
        );
        assert_eq!(text(Failure::of(&error, Scheme::Gs)), "the answer is malformed");
    }

    #[test]
    fn refused_token_is_an_error_of_credentials() {
        let error = generic("Error performing token request: status code: 400 Bad Request: SECRET");
        let found = text(Failure::of(&error, Scheme::Gs));
        assert!(found.starts_with("status 400; check GOOGLE_APPLICATION_CREDENTIALS"), "{found}");
        let error = generic("status code: 400 Bad Request: SECRET");
        let found = text(Failure::of(&error, Scheme::Gs));
        assert_eq!(found, "status 400; the server refuses the request");
    }
}
