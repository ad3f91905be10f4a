//! One error for the whole engine: what went wrong, where, and what to do about it.
//!
//! The kind is private; callers ask predicates, people read the text. A text names the input or
//! the directory it is about, says what was expected and found, and ends with a way out.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::readable::readable_size;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a job on line files could not be done.
#[derive(Debug)]
pub struct Error(Box<Kind>);

#[derive(Debug)]
enum Kind {
    Read { input: String, source: io::Error },
    Directory { input: String },
    Changed { input: String, how: &'static str },
    StdinTwice,
    LineTooLong { input: String, offset: u64, limit: u64 },
    BadLine { input: String, offset: u64, why: String },
    Foreign(Box<dyn std::error::Error + Send + Sync>),
    MemoryTooSmall { asked: u64, least: u64 },
    FilterTooLarge { keys: u64, rate: f64, needed: u64, cap: u64 },
    ListTooLong { inputs: String, cap: u64 },
    ListTooLarge { inputs: String, room: u64 },
    TooManyLines { inputs: String, cap: u64 },
    Full,
    Outgrown { size: u64, most: u64 },
    UnknownSize,
    Unforeseeable { input: String },
    Alloc { bytes: u64 },
    Temp { dir: PathBuf, doing: &'static str, source: io::Error },
    InWorkDir { dir: PathBuf, doing: &'static str, source: io::Error },
    WorkDir { dir: PathBuf, problem: String },
    Write { rest: bool, source: io::Error },
    Damaged { file: String, what: &'static str },
    Ledger { source: io::Error },
    Save { source: io::Error },
    Filter(petal::Error),
    Random,
    Cancelled,
    Range { input: String, start: u64, end: u64, problem: &'static str },
    Work { file: PathBuf, problem: String },
    Uncountable,
    Worded { about: About, words: Words },
}

/// What an error is about that is put into words where it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// An input that is not what it should be.
    Input,
    /// Settings that cannot be what they are.
    Setting,
    /// Memory that does not suffice.
    Memory,
    /// A filter that takes no more lines.
    Full,
}

/// Words that come with the names of settings.
struct Words(Box<dyn Fn(&Names) -> String + Send + Sync>);

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&(self.0)(&Names::PROGRAM), f)
    }
}

impl Error {
    fn new(kind: Kind) -> Self {
        Self(Box::new(kind))
    }

    pub(crate) fn read(input: &str, source: io::Error) -> Self {
        // A reader may have found what is wrong itself.
        let source = match source.downcast::<Self>() {
            Ok(found) => return found,
            Err(source) => source,
        };
        if source.kind() == io::ErrorKind::IsADirectory {
            return Self::directory(input);
        }
        Self::new(Kind::Read { input: input.to_owned(), source })
    }

    pub(crate) fn directory(input: &str) -> Self {
        Self::new(Kind::Directory { input: input.to_owned() })
    }

    pub(crate) fn changed(input: &str, how: &'static str) -> Self {
        Self::new(Kind::Changed { input: input.to_owned(), how })
    }

    pub(crate) fn stdin_twice() -> Self {
        Self::new(Kind::StdinTwice)
    }

    pub(crate) fn line_too_long(input: &str, offset: u64, limit: u64) -> Self {
        Self::new(Kind::LineTooLong { input: input.to_owned(), offset, limit })
    }

    pub(crate) fn bad_line(input: &str, offset: u64, why: String) -> Self {
        Self::new(Kind::BadLine { input: input.to_owned(), offset, why })
    }

    /// What another make of filter says: of [`LineFilterMut::put`](crate::LineFilterMut::put).
    #[must_use]
    pub fn of_filter(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(Kind::Foreign(Box::new(error)))
    }

    pub(crate) fn memory_too_small(asked: u64, least: u64) -> Self {
        Self::new(Kind::MemoryTooSmall { asked, least })
    }

    pub(crate) fn filter_too_large(keys: u64, rate: f64, needed: u64, cap: u64) -> Self {
        Self::new(Kind::FilterTooLarge { keys, rate, needed, cap })
    }

    pub(crate) fn list_too_long(inputs: &str, cap: u64) -> Self {
        Self::new(Kind::ListTooLong { inputs: inputs.to_owned(), cap })
    }

    pub(crate) fn list_too_large(inputs: &str, room: u64) -> Self {
        Self::new(Kind::ListTooLarge { inputs: inputs.to_owned(), room })
    }

    pub(crate) fn too_many_lines(inputs: &str, cap: u64) -> Self {
        Self::new(Kind::TooManyLines { inputs: inputs.to_owned(), cap })
    }

    pub(crate) fn full() -> Self {
        Self::new(Kind::Full)
    }

    pub(crate) fn outgrown(size: u64, most: u64) -> Self {
        Self::new(Kind::Outgrown { size, most })
    }

    pub(crate) fn unknown_size() -> Self {
        Self::new(Kind::UnknownSize)
    }

    pub(crate) fn unforeseeable(input: &str) -> Self {
        Self::new(Kind::Unforeseeable { input: input.to_owned() })
    }

    pub(crate) fn alloc(bytes: u64) -> Self {
        Self::new(Kind::Alloc { bytes })
    }

    pub(crate) fn temp(dir: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::new(Kind::Temp { dir: dir.to_owned(), doing, source })
    }

    /// Something with a file in the work directory of a job went wrong.
    pub(crate) fn in_work_dir(dir: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::new(Kind::InWorkDir { dir: dir.to_owned(), doing, source })
    }

    pub(crate) fn work_dir(dir: &Path, problem: &str) -> Self {
        Self::new(Kind::WorkDir { dir: dir.to_owned(), problem: problem.to_owned() })
    }

    pub(crate) fn write(source: io::Error) -> Self {
        Self::new(Kind::Write { rest: false, source })
    }

    /// The sink of the lines that are not in the answer cannot be written.
    pub(crate) fn write_rest(source: io::Error) -> Self {
        Self::new(Kind::Write { rest: true, source })
    }

    pub(crate) fn damaged(file: &str, what: &'static str) -> Self {
        Self::new(Kind::Damaged { file: file.to_owned(), what })
    }

    pub(crate) fn ledger(source: io::Error) -> Self {
        Self::new(Kind::Ledger { source })
    }

    pub(crate) fn save(source: io::Error) -> Self {
        Self::new(Kind::Save { source })
    }

    pub(crate) fn random() -> Self {
        Self::new(Kind::Random)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(Kind::Cancelled)
    }

    pub(crate) fn range(input: &str, start: u64, end: u64, problem: &'static str) -> Self {
        Self::new(Kind::Range { input: input.to_owned(), start, end, problem })
    }

    /// What is wrong with a file that a function over ranges has made, or shall make.
    pub(crate) fn work(file: &Path, problem: impl Into<String>) -> Self {
        Self::new(Kind::Work { file: file.to_owned(), problem: problem.into() })
    }

    /// The same, of the system's own words.
    pub(crate) fn work_io(file: &Path, doing: &str, source: &io::Error) -> Self {
        Self::work(file, format!("cannot be {doing}: {}", plain(source)))
    }

    pub(crate) fn uncountable() -> Self {
        Self::new(Kind::Uncountable)
    }

    /// An error in the words of who found it.
    pub(crate) fn worded(
        about: About,
        words: impl Fn(&Names) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::new(Kind::Worded { about, words: Words(Box::new(words)) })
    }

    /// Whoever listened wanted the job to be given up: [`Progress::cancelled`](crate::Progress::cancelled).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(&*self.0, Kind::Cancelled)
    }

    /// The input that could not be read, as it was named.
    #[must_use]
    pub fn input(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Read { input, .. } => Some(input),
            _ => None,
        }
    }

    /// A file that a function over ranges has made is missing, damaged, or of another job.
    #[must_use]
    pub fn is_work(&self) -> bool {
        matches!(&*self.0, Kind::Work { .. })
    }

    /// The reader of our output went away (`petal … | head`): not a failure of the job.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(&*self.0, Kind::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Why a sink could not be written, and whether it is that of the lines that are not in the
    /// answer.
    #[must_use]
    pub fn write_error(&self) -> Option<(bool, &io::Error)> {
        match &*self.0 {
            Kind::Write { rest, source } => Some((*rest, source)),
            _ => None,
        }
    }

    /// A line is longer than a quarter of the memory cap.
    #[must_use]
    pub fn is_line_too_long(&self) -> bool {
        matches!(&*self.0, Kind::LineTooLong { .. })
    }

    /// The filter that lines were put into refused them: [`of_filter`](Self::of_filter).
    #[must_use]
    pub fn is_of_filter(&self) -> bool {
        matches!(&*self.0, Kind::Foreign(_))
    }

    /// A line cannot be a key of the filter.
    #[must_use]
    pub fn is_bad_line(&self) -> bool {
        matches!(&*self.0, Kind::BadLine { .. })
    }

    /// Lines that are to be held take more memory than they may.
    #[must_use]
    pub fn is_list_too_large(&self) -> bool {
        matches!(&*self.0, Kind::ListTooLarge { .. })
    }

    /// The memory cap is below the least this job can work in.
    #[must_use]
    pub fn is_memory_too_small(&self) -> bool {
        matches!(&*self.0, Kind::MemoryTooSmall { .. })
    }

    /// Writing (the output or temporary data) failed for want of space.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match &*self.0 {
            Kind::Temp { source, .. } | Kind::Write { source, .. } => is_full(source),
            Kind::InWorkDir { source, .. } => is_full(source),
            _ => false,
        }
    }

    /// More memory is needed than the cap allows, or than there is.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        use Kind::{
            Alloc, FilterTooLarge, ListTooLarge, ListTooLong, MemoryTooSmall, Outgrown,
            TooManyLines,
        };
        match &*self.0 {
            MemoryTooSmall { .. } | FilterTooLarge { .. } | ListTooLong { .. } => true,
            ListTooLarge { .. } | TooManyLines { .. } | Outgrown { .. } | Alloc { .. } => true,
            Kind::Worded { about, .. } => *about == About::Memory,
            Kind::Filter(error) => error.is_alloc(),
            _ => false,
        }
    }

    /// A setting cannot be what it is, for these inputs.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        match &*self.0 {
            Kind::UnknownSize | Kind::Uncountable => true,
            Kind::Unforeseeable { .. } | Kind::WorkDir { .. } => true,
            Kind::Worded { about, .. } => *about == About::Setting,
            _ => false,
        }
    }

    /// In words, with the names that its settings have where people set them; the program's are
    /// those of `Display`.
    pub fn told<'a>(&'a self, names: &'a Names) -> impl fmt::Display + 'a {
        Told(&self.0, names)
    }

    /// The filter takes no more lines.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match &*self.0 {
            Kind::Full => true,
            Kind::Worded { about, .. } => *about == About::Full,
            Kind::Filter(error) => error.is_full(),
            _ => false,
        }
    }

    /// Something is wrong with an input, and not with what was made of the lines before.
    pub(crate) fn is_of_inputs(&self) -> bool {
        self.is_input() || self.is_line_too_long()
    }

    /// An input could not be opened or read.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(
            &*self.0,
            Kind::Worded { about: About::Input, .. }
                | Kind::Read { .. }
                | Kind::Directory { .. }
                | Kind::Changed { .. }
                | Kind::StdinTwice
                | Kind::Range { .. }
        )
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What settings are called where people set them, for [`Error::told`].
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The cap on memory.
    pub memory: &'static str,
    /// The rate of an approximate job, or of a filter.
    pub rate: &'static str,
    /// Lines to plan for.
    pub keys: &'static str,
    /// Where the answer goes.
    pub output: &'static str,
    /// The directory for temporary files.
    pub temp_dir: &'static str,
    /// The directory of a job that can be resumed.
    pub work_dir: &'static str,
    /// To go on from what is in that directory.
    pub resume: &'static str,
    /// How to say that lines end in NUL.
    pub null: &'static str,
    /// How to say that inputs are lines, whatever they look like.
    pub text: &'static str,
    /// The type of a filter.
    pub kind: &'static str,
    /// Bits of a counter.
    pub width: &'static str,
    /// How to say that a filter shall grow.
    pub growing: &'static str,
    /// Lines that a filter grows up to.
    pub max_keys: &'static str,
    /// The time after which a filter forgets.
    pub window: &'static str,
    /// The lines after which it does.
    pub last: &'static str,
    /// How to say either, by examples.
    pub forgetting: &'static str,
    /// Lines that a cascade must not hold.
    pub not_in: &'static str,
    /// What finds the lines that inputs have in common.
    pub common: &'static str,
}

impl Names {
    /// As the program has them.
    pub const PROGRAM: Self = Self {
        memory: "-m",
        rate: "-p",
        keys: "-n",
        output: "-o",
        temp_dir: "-T",
        work_dir: "--work-dir",
        resume: "--resume",
        null: "-z",
        text: "--text",
        kind: "--type",
        width: "--width",
        growing: "--growing",
        max_keys: "--up-to",
        window: "--window",
        last: "--last",
        forgetting: "--window 7d or --last 1e6",
        not_in: "--not-in",
        common: "petal common",
    };

    /// A text of ours that has the program's names in it.
    fn put_into(&self, text: &str) -> String {
        let named = text.replace(Self::PROGRAM.resume, self.resume);
        named.replace(Self::PROGRAM.memory, self.memory)
    }
}

/// An error in words.
struct Told<'a>(&'a Kind, &'a Names);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(kind, names) = self;
        let Names { memory, rate: rate_name, keys: keys_name, output, temp_dir, work_dir, .. } =
            names;
        match kind {
            Kind::Read { input, source } => {
                write!(f, "{input}: cannot read: {}", names.put_into(&plain(source)))
            }
            Kind::Directory { input } => write!(
                f,
                "{input}: is a directory, expected a file of lines; name the files in it instead"
            ),
            Kind::Changed { input, how } => write!(
                f,
                "{input}: changed while it was being read: {how}; run again when nothing \
                 rewrites it"
            ),
            Kind::StdinTwice => write!(
                f,
                "-: standard input is named twice, it can be read once; save it to a file first"
            ),
            Kind::LineTooLong { input, offset, limit } => write!(
                f,
                "{input}: the line at byte {offset} is longer than {}, a quarter of the memory \
                 cap; raise {memory}, or check that the file has the line ends you expect ({} for NUL)",
                readable_size(*limit),
                names.null
            ),
            Kind::BadLine { input, offset, why } => {
                write!(f, "{input}: the line at byte {offset}: {why}")
            }
            Kind::Foreign(error) => error.fmt(f),
            Kind::MemoryTooSmall { asked, least } => write!(
                f,
                "{memory}: {} is too little, at least {} is needed; raise {memory}",
                readable_size(*asked),
                readable_size(*least)
            ),
            Kind::FilterTooLarge { keys, rate, needed, cap } => write!(
                f,
                "a filter for {keys} lines at a rate of {rate} takes {}, more than {memory} {} leaves; \
                 raise {memory}, or accept a higher rate with {rate_name}",
                readable_size(*needed),
                readable_size(*cap)
            ),
            Kind::ListTooLong { inputs, cap } => write!(
                f,
                "{inputs}: has more lines than can be held in what the filter leaves of {memory}, {}; \
                 raise {memory}",
                readable_size(*cap)
            ),
            Kind::ListTooLarge { inputs, room } => write!(
                f,
                "{inputs}: its lines take more than the {} of memory that there are for them; give \
                 fewer",
                readable_size(*room)
            ),
            Kind::TooManyLines { inputs, cap } => write!(
                f,
                "{inputs}: the hashes of so many lines do not fit {} of memory; use a type of \
                 filter that takes line after line, like bloom",
                readable_size(*cap)
            ),
            Kind::Full => write!(f, "the filter is full; build a larger one"),
            Kind::Outgrown { size, most } => write!(
                f,
                "the filter has grown to {}, more than the {} of {memory}; raise {memory}, or build it for a \
                 higher rate with {rate_name}",
                readable_size(*size),
                readable_size(*most)
            ),
            Kind::UnknownSize => write!(
                f,
                "{rate_name}: a filter for an input that is no file cannot be sized; say with {keys_name} how many \
                 lines to expect"
            ),
            Kind::Unforeseeable { input } => write!(
                f,
                "{input}: is no file, its lines cannot be sampled; save it to a file to plan with it"
            ),
            Kind::Alloc { bytes } => write!(
                f,
                "out of memory: the system refused {}; lower {memory} below what is free",
                readable_size(*bytes)
            ),
            Kind::Temp { dir, doing, source } if is_full(source) => write!(
                f,
                "{}: no space left while {doing}; free some, name another directory ({temp_dir}, {work_dir}), or \
                 raise {memory} to need less",
                dir.display()
            ),
            Kind::Temp { dir, doing, source } => write!(
                f,
                "{}: temporary file: {} while {doing}; name another directory ({temp_dir}, {work_dir})",
                dir.display(),
                plain(source)
            ),
            Kind::InWorkDir { dir, doing, source } if is_full(source) => write!(
                f,
                "{work_dir} {}: no space left while {doing}; free some, then go on with {}",
                dir.display(),
                names.resume
            ),
            Kind::InWorkDir { dir, doing, source }
                if source.kind() == io::ErrorKind::UnexpectedEof =>
            {
                write!(
                    f,
                    "{work_dir} {}: its records are damaged, found while {doing}; remove the \
                     directory and start again",
                    dir.display()
                )
            }
            Kind::InWorkDir { dir, doing, source } => {
                let (dir, source) = (dir.display(), plain(source));
                write!(f, "{work_dir} {dir}: {source} while {doing}; name another directory")
            }
            Kind::WorkDir { dir, problem } => {
                write!(f, "{work_dir} {}: {}", dir.display(), names.put_into(problem))
            }
            Kind::Write { source, .. } if is_full(source) => {
                write!(f, "output: no space left; free some or write elsewhere with {output}")
            }
            Kind::Write { source, .. } => write!(f, "output: cannot write: {}", plain(source)),
            Kind::Damaged { file, what } => {
                write!(f, "{file}: {what}; restore it, or remove it and its filter to begin anew")
            }
            Kind::Ledger { source } => {
                write!(f, "the file of exact fingerprints: cannot read: {}", plain(source))
            }
            // Whoever saves says what could not be saved where.
            Kind::Save { source } => write!(f, "{}", plain(source)),
            Kind::Filter(error) => error.fmt(f),
            Kind::Cancelled => write!(f, "the job was cancelled"),
            Kind::Range { input, start, end, problem } => {
                write!(f, "{input}: bytes {start} to {end}: {problem}")
            }
            Kind::Work { file, problem } => write!(f, "{}: {problem}", file.display()),
            Kind::Random => write!(f, "the system gave no random bytes; try again"),
            Kind::Uncountable => write!(
                f,
                "an input that can be read only once cannot be counted first; say how many keys to \
                 plan for with {keys_name}"
            ),
            Kind::Worded { words, .. } => f.write_str(&(words.0)(names)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Told(&self.0, &Names::PROGRAM).fmt(f)
    }
}

/// An I/O error in words, without Rust's `(os error N)`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Kind::Read { source, .. }
            | Kind::Temp { source, .. }
            | Kind::InWorkDir { source, .. }
            | Kind::Write { source, .. }
            | Kind::Ledger { source }
            | Kind::Save { source } => Some(source),
            Kind::Filter(error) => Some(error),
            _ => None,
        }
    }
}

impl From<petal::Error> for Error {
    fn from(error: petal::Error) -> Self {
        Self::new(Kind::Filter(error))
    }
}
