//! A connection to a server.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::resp::{Reply, command};

/// A connection for single commands and for pipelines.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a command whose arguments contain no spaces.
    #[track_caller]
    pub(crate) fn call(&mut self, line: &str) -> Reply {
        self.call_args(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Sends a command of arbitrary bytes.
    #[track_caller]
    pub(crate) fn call_args<W: AsRef<[u8]>>(&mut self, args: &[W]) -> Reply {
        self.try_call(args)
            .unwrap_or_else(|error| panic!("no reply to {}: {error}", formatted(args)))
    }

    /// Sends a command; an error if the connection ends.
    pub(crate) fn try_call<W: AsRef<[u8]>>(&mut self, args: &[W]) -> std::io::Result<Reply> {
        self.stream.get_mut().write_all(&command(args))?;
        Reply::read(&mut self.stream, &mut Vec::new())
    }

    /// Sends a command and returns the bytes of the reply.
    #[track_caller]
    pub(crate) fn call_raw<W: AsRef<[u8]>>(&mut self, args: &[W]) -> Vec<u8> {
        let mut raw = Vec::new();
        self.stream.get_mut().write_all(&command(args)).unwrap();
        Reply::read(&mut self.stream, &mut raw).unwrap_or_else(|error| {
            panic!("no reply to {}: {error}; received {raw:?}", formatted(args));
        });
        raw
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Reads the next reply.
    #[track_caller]
    pub(crate) fn read(&mut self) -> Reply {
        Reply::read(&mut self.stream, &mut Vec::new()).unwrap()
    }

    /// Sends all commands before it reads the replies.
    #[track_caller]
    pub(crate) fn pipeline<W: AsRef<[u8]>>(&mut self, commands: &[Vec<W>]) -> Vec<Reply> {
        let bytes: Vec<u8> = commands.iter().flat_map(|args| command(args)).collect();
        self.send(&bytes);
        commands.iter().map(|_| self.read()).collect()
    }

    /// Switches to RESP3.
    pub(crate) fn use_resp3(&mut self) {
        assert!(!self.call("HELLO 3").is_error());
    }
}

/// Formats a command for a message; long arguments are truncated.
fn formatted<W: AsRef<[u8]>>(args: &[W]) -> String {
    let cut = |arg: &W| {
        let arg = arg.as_ref();
        arg[..arg.len().min(60)].escape_ascii().to_string()
    };
    args.iter().map(cut).collect::<Vec<_>>().join(" ")
}
