//! One connection to a server.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::resp::{Reply, command};

/// A connection. Commands are asked one by one, or sent in a row and their answers read later.
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

    /// Asks a command whose words have no blanks.
    #[track_caller]
    pub(crate) fn ask(&mut self, line: &str) -> Reply {
        self.ask_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Asks a command of any bytes.
    #[track_caller]
    pub(crate) fn ask_words<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Reply {
        self.try_words(words)
            .unwrap_or_else(|error| panic!("no answer to {}: {error}", shown(words)))
    }

    /// The same, where the connection may end.
    pub(crate) fn try_words<W: AsRef<[u8]>>(&mut self, words: &[W]) -> std::io::Result<Reply> {
        self.stream.get_mut().write_all(&command(words))?;
        Reply::read(&mut self.stream, &mut Vec::new())
    }

    /// Asks a command and gives the bytes of the answer.
    #[track_caller]
    pub(crate) fn ask_raw<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Vec<u8> {
        let mut raw = Vec::new();
        self.stream.get_mut().write_all(&command(words)).unwrap();
        Reply::read(&mut self.stream, &mut raw).unwrap_or_else(|error| {
            panic!("no answer to {}: {error}; so far {raw:?}", shown(words));
        });
        raw
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Reads the next answer.
    #[track_caller]
    pub(crate) fn read(&mut self) -> Reply {
        Reply::read(&mut self.stream, &mut Vec::new()).unwrap()
    }

    /// Asks many commands in a row, all sent before the first answer is read.
    #[track_caller]
    pub(crate) fn pipeline<W: AsRef<[u8]>>(&mut self, commands: &[Vec<W>]) -> Vec<Reply> {
        let bytes: Vec<u8> = commands.iter().flat_map(|words| command(words)).collect();
        self.send(&bytes);
        commands.iter().map(|_| self.read()).collect()
    }

    /// Speaks RESP3 from here on.
    pub(crate) fn speak_resp3(&mut self) {
        assert!(!self.ask("HELLO 3").is_error());
    }
}

/// A command for a message: a long word is cut.
fn shown<W: AsRef<[u8]>>(words: &[W]) -> String {
    let cut = |word: &W| {
        let word = word.as_ref();
        word[..word.len().min(60)].escape_ascii().to_string()
    };
    words.iter().map(cut).collect::<Vec<_>>().join(" ")
}
