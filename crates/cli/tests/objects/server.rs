//! A Ceph Object Gateway for the tests, and curl as a client that knows nothing of petal.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use petal_testkit::scratch::Scratch;

/// The bucket of the tests.
pub(crate) const BUCKET: &str = "lines";

/// The secret key of the server's user.
pub(crate) const SECRET: &str = "PETALSECRET";

/// A server that runs until the tests end: then its standard input ends.
pub(crate) struct Server {
    _child: Child,
    dir: Scratch,
    pub(crate) port: u16,
    pub(crate) tls_port: u16,
}

/// Returns a port that nothing listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    /// Returns the server of all tests; starts it at the first call.
    pub(crate) fn get() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    fn start() -> Self {
        let peers = std::env::var_os("PETAL_PEERS").expect("PETAL_PEERS names the folder of peers");
        let dir = Scratch::new();
        let [monitor, port, tls_port] = [free_port(), free_port(), free_port()];
        let mut command = Command::new(PathBuf::from(peers).join("bin/ceph-s3"));
        command.arg(dir.path()).args([monitor, port, tls_port].map(|port| port.to_string()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the server has not started");
        let server = Self { _child: child, dir, port, tls_port };
        assert_eq!(server.curl("", &["-X", "PUT"]).0, 200);
        server
    }

    /// Returns the path of the certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.dir.file("cert.pem")
    }

    /// Sends a request for a key and returns the status and the body.
    fn curl(&self, key: &str, args: &[&str]) -> (u16, Vec<u8>) {
        let mut command = Command::new("curl");
        command.args(["-s", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user"]);
        command.arg(format!("PETALKEY:{SECRET}"));
        command.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-w", "\n%{http_code}"]);
        command.args(args).arg(format!("http://127.0.0.1:{}/{BUCKET}{key}", self.port));
        let mut out = command.output().unwrap().stdout;
        let at = out.iter().rposition(|byte| *byte == b'\n').unwrap();
        let status = String::from_utf8(out.split_off(at)).unwrap();
        (status.trim().parse().unwrap(), out)
    }

    /// Writes an object.
    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        self.put_with(key, bytes, &[]);
    }

    /// Writes an object that everyone may read.
    pub(crate) fn put_public(&self, key: &str, bytes: &[u8]) {
        self.put_with(key, bytes, &["-H", "x-amz-acl: public-read"]);
    }

    fn put_with(&self, key: &str, bytes: &[u8], args: &[&str]) {
        let scratch = Scratch::new();
        let file = scratch.write("object", bytes);
        let args = [args, &["-T", file.to_str().unwrap()]].concat();
        assert_eq!(self.curl(&format!("/{key}"), &args).0, 200);
    }

    /// Returns the bytes of an object; `None` if there is none.
    pub(crate) fn object(&self, key: &str) -> Option<Vec<u8>> {
        let (status, bytes) = self.curl(&format!("/{key}"), &[]);
        assert!(status == 200 || status == 404, "{status}");
        (status == 200).then_some(bytes)
    }

    /// Returns whether an upload to a key is unfinished.
    pub(crate) fn is_uploading(&self, key: &str) -> bool {
        let (status, list) = self.curl("?uploads=", &[]);
        assert_eq!(status, 200);
        String::from_utf8(list).unwrap().contains(&format!("<Key>{key}</Key>"))
    }

    /// Lets a command use the server at this address.
    pub(crate) fn set_env(&self, command: &mut Command, endpoint: &str) {
        command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "PETALKEY").env("AWS_SECRET_ACCESS_KEY", SECRET);
    }
}
