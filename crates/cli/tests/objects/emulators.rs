//! Emulators of Azure Blob Storage (Azurite) and Google Cloud Storage (fake-gcs-server), and curl as a client that knows
//! nothing of petal.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use petal_testkit::scratch::Scratch;

use crate::server::free_port;

/// The bucket or container of the tests.
const BUCKET: &str = "lines";

/// The account of Azurite.
const ACCOUNT: &str = "petalaccount";

/// The key of the account, and the same in base64.
const KEY: &str = "SECRETSECRETSECRET";
pub(crate) const KEY_BASE64: &str = "U0VDUkVUU0VDUkVUU0VDUkVU";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    Azure,
    Google,
}

pub(crate) const CLOUDS: [Cloud; 2] = [Cloud::Azure, Cloud::Google];

/// An emulator that runs until the tests end: then its standard input ends.
struct Emulator {
    _child: Child,
    port: u16,
}

/// Starts an emulator and waits until it serves.
fn start(name: &str) -> Emulator {
    let peers = std::env::var_os("PETAL_PEERS").expect("PETAL_PEERS names the folder of peers");
    let port = free_port();
    let mut command = Command::new(PathBuf::from(peers).join("bin").join(name));
    command.arg(port.to_string()).env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY_BASE64}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{name} has not started");
    Emulator { _child: child, port }
}

impl Cloud {
    fn emulator(self) -> &'static Emulator {
        static AZURE: OnceLock<Emulator> = OnceLock::new();
        static GOOGLE: OnceLock<Emulator> = OnceLock::new();
        match self {
            Self::Azure => AZURE.get_or_init(|| {
                let emulator = start("azurite-blob");
                let url = azure_url(emulator.port, "?restype=container&");
                assert_eq!(curl(&["-X", "PUT", "-H", "Content-Length: 0", &url]).0, 201);
                emulator
            }),
            Self::Google => GOOGLE.get_or_init(|| {
                let emulator = start("fake-gcs-server");
                let url = format!("http://127.0.0.1:{}/storage/v1/b", emulator.port);
                let bucket = format!("{{\"name\":\"{BUCKET}\"}}");
                let json = "Content-Type: application/json";
                assert_eq!(curl(&["-X", "POST", "-H", json, "-d", &bucket, &url]).0, 200);
                emulator
            }),
        }
    }

    pub(crate) fn port(self) -> u16 {
        self.emulator().port
    }

    pub(crate) fn direct(self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// Returns the address of an object for petal.
    pub(crate) fn address(self, key: &str) -> String {
        let scheme = if self == Self::Azure { "az" } else { "gs" };
        format!("{scheme}://{BUCKET}/{key}")
    }

    /// Writes an object.
    pub(crate) fn put(self, key: &str, bytes: &[u8]) {
        let scratch = Scratch::new();
        let file = scratch.write("object", bytes);
        let (file, port, key) = (file.to_str().unwrap(), self.port(), encoded(key));
        let status = match self {
            Self::Azure => {
                let url = azure_url(port, &format!("/{key}?"));
                curl(&["-T", file, "-H", "x-ms-blob-type: BlockBlob", &url]).0
            }
            Self::Google => {
                let path = format!("upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={key}");
                let url = format!("http://127.0.0.1:{port}/{path}");
                curl(&["-X", "POST", "--data-binary", &format!("@{file}"), &url]).0
            }
        };
        assert!(matches!(status, 200 | 201), "{status}");
    }

    /// Lets a command use the emulator at this address, with a right credential.
    pub(crate) fn set_env(self, command: &mut Command, endpoint: &str) {
        match self {
            Self::Azure => {
                command.env("AZURE_STORAGE_ENDPOINT", format!("{endpoint}/{ACCOUNT}"));
                command.env("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT);
                command.env("AZURE_STORAGE_ACCOUNT_KEY", KEY_BASE64);
            }
            Self::Google => {
                command.env("GOOGLE_BASE_URL", endpoint).env("GOOGLE_BEARER_TOKEN", "SECRET");
            }
        }
    }
}

/// Returns the bytes of an object of Azure; `None` if there is none.
pub(crate) fn azure_object(key: &str) -> Option<Vec<u8>> {
    let (status, bytes) = curl(&[&azure_url(Cloud::Azure.port(), &format!("/{}?", encoded(key)))]);
    assert!(status == 200 || status == 404, "{status}");
    (status == 200).then_some(bytes)
}

/// Returns the signed address of something in the container.
fn azure_url(port: u16, rest: &str) -> String {
    format!("http://127.0.0.1:{port}/{ACCOUNT}/{BUCKET}{rest}{}", azure_token())
}

/// Returns a shared access signature of the account, signed by openssl.
pub(crate) fn azure_token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| {
        let expiry = "2099-01-01T00:00:00Z";
        let text = format!("{ACCOUNT}\nrwdlac\nb\nsco\n\n{expiry}\n\nhttps,http\n2018-11-09\n");
        let scratch = Scratch::new();
        let file = scratch.write("text", text);
        let sign = Command::new("openssl")
            .args(["dgst", "-sha256", "-hmac", KEY, "-binary"])
            .arg(file)
            .output();
        let signature =
            Command::new("base64").arg(scratch.write("signature", sign.unwrap().stdout)).output();
        let signature = String::from_utf8(signature.unwrap().stdout).unwrap();
        let signature =
            signature.trim().replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!("sv=2018-11-09&ss=b&srt=sco&sp=rwdlac&se={expiry}&spr=https,http&sig={signature}")
    })
}

/// Returns a key as a part of an address.
fn encoded(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._".contains(&byte);
    key.bytes()
        .map(
            |byte| {
                if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

/// Sends a request and returns the status and the body.
fn curl(args: &[&str]) -> (u16, Vec<u8>) {
    let mut command = Command::new("curl");
    let mut out = command.args(["-s", "-w", "\n%{http_code}"]).args(args).output().unwrap().stdout;
    let at = out.iter().rposition(|byte| *byte == b'\n').unwrap();
    let status = String::from_utf8(out.split_off(at)).unwrap();
    (status.trim().parse().unwrap(), out)
}
