//! A proxy in front of a server, which fails as networks and servers do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What happens to a request.
pub(crate) enum Fault {
    None,
    /// An answer with this status, not of the server.
    Status(u16),
    /// The connection ends after this many bytes of the answer.
    Cut(u64),
}

/// A proxy with one request per connection.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// The first line of each request and its range.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy; `fault` gets the number of each request, from 0, and its head.
    pub(crate) fn new(
        server: u16,
        fault: impl Fn(usize, &str) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, fault) = (Arc::clone(&requests), Arc::new(fault));
        let count = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (log, fault, count) =
                    (Arc::clone(&log), Arc::clone(&fault), Arc::clone(&count));
                std::thread::spawn(move || {
                    let number = |head: &str| {
                        log.lock().unwrap().push(head.lines().next().unwrap_or("").to_owned());
                        fault(count.fetch_add(1, Ordering::Relaxed), head)
                    };
                    // The connection may end at any time.
                    let _ = serve(client.unwrap(), server, number);
                });
            }
        });
        Self { port, requests }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the number of requests with this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|line| line.starts_with(method)).count()
    }
}

fn serve(
    mut client: TcpStream,
    server: u16,
    fault: impl FnOnce(&str) -> Fault,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if client.read(&mut byte)? == 0 {
            return Ok(());
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let lower = head.to_lowercase();
    let length = lower.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
    let length = length.map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    let most = match fault(&head) {
        Fault::Status(status) => {
            let answer =
                format!("HTTP/1.1 {status} Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return client.write_all(answer.as_bytes());
        }
        Fault::Cut(bytes) => bytes,
        Fault::None => u64::MAX,
    };
    let mut backend = TcpStream::connect(("127.0.0.1", server))?;
    let (line, rest) = head.split_once("\r\n").unwrap();
    backend.write_all(format!("{line}\r\nConnection: close\r\n{rest}").as_bytes())?;
    backend.write_all(&body)?;
    std::io::copy(&mut backend.take(most), &mut client)?;
    Ok(())
}
