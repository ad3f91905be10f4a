use std::fs::File;

use super::source::Source;
use super::{Input, Open};
use crate::error::ErrorKind;

#[test]
fn changed_file_is_an_error_in_the_next_pass() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    std::fs::write(&path, "a\nb\n").unwrap();
    let inputs = Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap();
    assert!(inputs[0].open(0, &()).is_ok() && inputs[0].check_unchanged(&()).is_ok());
    // The same bytes and more.
    std::fs::write(&path, "a\nb\nc\n").unwrap();
    assert!(inputs[0].open(0, &()).is_ok() && inputs[0].check_unchanged(&()).is_ok());
    for text in ["a\nc\n", "a\n", "a\nc\nd\n"] {
        std::fs::write(&path, text).unwrap();
        assert!(inputs[0].open(0, &()).err().unwrap().to_string().contains("changed"));
        assert!(inputs[0].check_unchanged(&()).unwrap_err().kind() == ErrorKind::Input);
    }
}

#[test]
fn file_without_a_reported_size_is_a_stream() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty");
    std::fs::write(&path, "").unwrap();
    let sources = [Source::from_arg(&path), Source::from_arg("/proc/self/status")];
    let inputs = Input::open_unchecked(&sources, 0).unwrap();
    assert_eq!(inputs[0].length(), Some(0));
    assert!(!inputs[1].is_file());
    // Opening it has consumed nothing.
    let Open::Stream(mut stream) = inputs[1].open(0, &()).unwrap() else { panic!("not a stream") };
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("Name:"));
}

#[test]
fn fifo_is_ready_after_its_writer_has_closed_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    for text in ["", "a\nb\n"] {
        let input = Input::open_unchecked(&[Source::from_arg(&path)], 1 << 20).unwrap().remove(0);
        let Open::Stream(mut stream) = input.open(0, &()).unwrap() else { panic!("not a stream") };
        assert!(!stream.ready() && !stream.ready(), "no data was written");
        let mut writer = File::options().write(true).open(&path).unwrap();
        assert!(!stream.ready(), "a writer without a byte");
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        drop(writer);
        assert!(stream.ready());
        let mut read = String::new();
        stream.read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
    }
    // A read also waits for a writer.
    let input = Input::open_unchecked(&[Source::from_arg(&path)], 1 << 20).unwrap().remove(0);
    let Open::Stream(mut stream) = input.open(0, &()).unwrap() else { panic!("not a stream") };
    let writer = std::thread::spawn(move || {
        std::thread::sleep(3 * crate::poll_read::POLL_TIMEOUT);
        std::fs::write(path, "late")
    });
    let mut read = String::new();
    stream.read_to_string(&mut read).unwrap();
    assert_eq!(read, "late");
    writer.join().unwrap().unwrap();
}

#[test]
fn missing_directory_and_double_stdin_are_errors_at_once() {
    let path = Source::from_arg("/no/such/file");
    assert!(Input::open_unchecked(&[path], 0).err().unwrap().kind() == ErrorKind::Input);
    let directory = Input::open_unchecked(&[Source::from_arg("/")], 0).err().unwrap();
    assert!(directory.to_string().contains("is a directory"));
    assert!(Input::open_unchecked(&[Source::Stdin, Source::Stdin], 0).is_err());
}
