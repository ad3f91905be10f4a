//! Filters of sets of hashes: their case and length, lists with counts, tables of hashes, checksum files.

use std::process::Command;

use crate::common::{RunOutput, TestDir};

/// Hashes of 40 digits in uppercase; the last of them are not in `list`.
fn hashes() -> Vec<String> {
    (0..10_u64)
        .map(|n| format!("{:040X}", u128::from(n + 1) * 0xfeed_beef_0123_4567_89ab))
        .collect()
}

fn lines(keys: &[String]) -> String {
    keys.iter().map(|key| format!("{key}\n")).collect()
}

#[track_caller]
fn failed(output: RunOutput, expected: &str) {
    assert_eq!(output.failure(), format!("petal: {expected}"));
}

/// Runs a command that finds nothing, or whose options exclude each other.
#[track_caller]
fn code(dir: &TestDir, args: &str, code: i32) {
    let output = dir.run(args);
    assert_eq!(output.code, Some(code), "{args}: {}", output.err);
}

#[test]
fn queries_of_another_shape_are_refused() {
    let (dir, hashes) = (TestDir::new(), hashes());
    dir.write("list", lines(&hashes[..8]));
    dir.run("build -n 100 -o f list").ok();
    let info = dir.run("info --json f").text();
    let recorded = ["\"case\": \"upper\"", "\"length\": 40", "\"keys\": 8"];
    assert!(recorded.iter().all(|text| info.contains(text)), "{info}");
    // Either case, and both in one key.
    dir.write("lower", lines(&hashes).to_lowercase());
    dir.write("mixed", format!("{}{}\n", &hashes[0][..20].to_lowercase(), &hashes[0][20..]));
    assert_eq!(dir.run("check -c f lower").text(), "8\n");
    assert_eq!(dir.run("check -v f lower").text(), lines(&hashes[8..]).to_lowercase());
    assert_eq!(dir.run("check -c f mixed").text(), "1\n");
    let advice =
        "take the column of the hashes with --column, or compute them with --key-transform (sha1)";
    let expected = "expected 40 hexadecimal digits, as the keys of the filter";
    let md5 = &hashes[0][..32];
    for (bad, found) in [
        (md5, "32 hexadecimal digits"),
        ("", "nothing"),
        ("password", "'password'"),
        ("a password of many words", "'a password of many words'"),
        ("a password of many words!", "'a password of many words...'"),
    ] {
        dir.write("queries", format!("{}{bad}\n{}", lines(&hashes[..2]), hashes[2]));
        let at = "queries: the line at byte 82 (line 3)";
        failed(dir.run("check f queries"), &format!("{at}: found {found}, {expected}; {advice}"));
    }
    dir.write("sums", format!("{}  a file\n", hashes[0]));
    let error = dir.run("check f sums").err;
    assert!(
        error.contains("line 1") && error.ends_with("use --sums for lines of checksum files\n")
    );
    // A header, a column, JSON: the number of the line is that in the file.
    dir.write("t.csv", format!("id,sha1\n1,{}\n2,{md5}\n", hashes[0]));
    let output = dir.run("check --column sha1 f t.csv");
    let at = "t.csv: the record at byte 51 (line 3)";
    failed(output, &format!("{at}: found 32 hexadecimal digits, {expected}; {advice}"));
    // Many chunks.
    let many = format!("{}{md5}\n", lines(&hashes).repeat(60_000));
    dir.write("many", many);
    assert!(dir.run("check -c -m 16M f many").err.contains("(line 600001): found 32"));
    // Transforms may end in the digest that the filter has; others are refused by their result.
    dir.write("passwords", "password\nother\n");
    dir.write("sha1", "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8\n");
    dir.run("build -n 100 -o p sha1").ok();
    assert_eq!(dir.run("check --key-transform sha1 p passwords").text(), "password\n");
    assert_eq!(dir.run("check --key-transform trim,sha1,uppercase -c p passwords").text(), "1\n");
    assert!(dir.run("check --key-transform md5 p passwords").err.contains("found 32 hex"));
    assert!(dir.run("check p passwords").err.contains("found 'password'"));
    // A list of exceptions is looked up in the same way.
    dir.write("allowed", "password\n");
    let allowed = dir.run("check --allow allowed --key-transform sha1 -c p passwords");
    assert_eq!(allowed.out, b"0\n", "{}", allowed.err);
    // One key.
    let output = dir.run("explain f password");
    let expected = format!("f: the key: found 'password', {expected}; name such a key");
    failed(output, &expected);
    let explained = dir.run(&format!("explain f {}", hashes[0].to_lowercase())).text();
    assert!(explained.contains(&format!("{} (40 bytes, after uppercase)", hashes[0])));
    // Keys of several lengths, or short ones, may be looked up with any.
    dir.write("both", lines(&[hashes[0].clone(), md5.to_owned()]));
    dir.run("build -n 100 -o both.f both").ok();
    dir.write("short", "BEEF\nABBA\n");
    dir.run("build -n 100 -o short.f short").ok();
    for filter in ["both.f", "short.f"] {
        code(&dir, &format!("check {filter} passwords"), 1);
    }
}

#[test]
fn names_beside_hashes_keep_their_case() {
    let (dir, hashes) = (TestDir::new(), hashes());
    let sums = |keys: &[String]| -> String {
        keys.iter().map(|key| format!("{}  Name-ABC.txt\n", key.to_lowercase())).collect()
    };
    dir.write("sums", sums(&hashes));
    dir.write("digits", sums(&["0123456789".repeat(4)]));
    for filter in ["bloom", "static"] {
        dir.run(&format!("build --type {filter} -o f sums")).ok();
        assert!(!dir.run("info --json f").text().contains("\"hex\""));
        assert_eq!(dir.run("check -c f sums").text(), "10\n");
        code(&dir, "check f digits", 1);
    }
}

#[test]
fn shape_counts_only_for_the_keys_of_which_it_was_recorded() {
    let (dir, hashes) = (TestDir::new(), hashes());
    dir.write("a", lines(&hashes[..4]));
    dir.write("b", lines(&hashes[4..]));
    dir.write("md5", format!("{}\n", &hashes[0][..32]));
    dir.write("lower", lines(&hashes).to_lowercase());
    dir.write("word", "word\n");
    let recorded = |filter: &str| {
        let info = dir.run(&format!("info --json {filter}")).text();
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        let hex = &info["metadata"]["hex"];
        (hex["length"].as_u64(), hex["keys"].as_u64())
    };
    for kind in ["bloom", "counting", "quotient"] {
        dir.run(&format!("build -n 100 --type {kind} -o f a")).ok();
        dir.run(&format!("build -n 100 --type {kind} -o g b")).ok();
        assert_eq!(recorded("f"), (Some(40), Some(4)), "{kind}");
        dir.run("merge -o both f g").ok();
        assert_eq!(recorded("both").0, Some(40), "{kind}");
        assert_eq!(dir.run("check -c both lower").text(), "10\n");
        dir.run("add f b").ok();
        assert_eq!(recorded("f"), (Some(40), Some(10)), "{kind}");
        assert_eq!(dir.run("check -c f lower").text(), "10\n");
        if kind != "bloom" {
            dir.run("remove f a").ok();
            assert_eq!(recorded("f"), (Some(40), Some(6)), "{kind}");
            assert_eq!(dir.run("check -c f lower").text(), "6\n");
        }
        dir.run("add f md5").ok();
        assert_eq!(recorded("f").0, None, "{kind}");
        code(&dir, "check f word", 1);
    }
    // A program adds a key and keeps the metadata.
    dir.run("build -n 100 -o f a").ok();
    let bytes = std::fs::read(dir.path("f")).unwrap();
    let (mut filter, metadata) = petal::BloomFilter::read_from(&bytes[..]).unwrap();
    filter.insert("word");
    filter.write_to(std::fs::File::create(dir.path("f")).unwrap(), &metadata).unwrap();
    assert_eq!(dir.run("check f word").text(), "word\n");
    assert_eq!(dir.run("check -c f a").text(), "4\n");
}

#[test]
fn transforms_refuse_keys_that_they_cannot_change() {
    let dir = TestDir::new();
    dir.write("hex", "0aff\n0AFF\nword\n");
    dir.write("latin1", b"a\n\xff\n".as_slice());
    let pairs = "expected pairs of hexadecimal digits, which unhex reads";
    failed(
        dir.run("build -o f --key-transform trim,unhex hex"),
        &format!("hex: the line at byte 10 (line 3): found 'word', {pairs}"),
    );
    failed(
        dir.run("dedup --key-transform ntlm latin1"),
        "latin1: the line at byte 2 (line 2): found 1 byte, expected UTF-8, which ntlm hashes",
    );
}

#[test]
fn bytes_of_hashes_have_a_length() {
    let (dir, hashes) = (TestDir::new(), hashes());
    // The last byte is a CR, which ends no line.
    let cr = format!("{}0D", &hashes[0][..38]);
    dir.write("list", lines(&[&hashes[..8], &[cr]].concat()));
    dir.run("build --type static --key-transform unhex -o f list").ok();
    let info = dir.run("info --json f").text();
    let recorded = ["\"case\": \"bytes\"", "\"length\": 40", "\"keys\": 9"];
    assert!(recorded.iter().all(|text| info.contains(text)), "{info}");
    assert!(!info.contains("line_ends"), "{info}");
    dir.write("lower", lines(&hashes).to_lowercase());
    assert_eq!(dir.run("check -c f lower").text(), "8\n");
    assert_eq!(dir.run("check -c f list").text(), "9\n");
    let md5 = &hashes[0][..32];
    dir.write("md5", format!("{md5}\n"));
    let expected =
        "found 32 hexadecimal digits, expected 40 hexadecimal digits, as the keys of the filter";
    let output = dir.run("check f md5");
    assert!(output.err.contains(expected), "{}", output.err);
    let output = dir.run(&format!("explain f {md5}"));
    assert!(output.err.contains(expected), "{}", output.err);
    let explained = dir.run(&format!("explain f {}", hashes[0])).text();
    assert!(explained.contains("(20 bytes, after unhex)"), "{explained}");
    dir.write("sums", format!("12,{md5},{},a\n", hashes[0]));
    assert_eq!(dir.run("check -c --sums f sums").text(), "1\n");
    // Other lengths are added: any may be looked up.
    dir.run("build -n 100 --key-transform unhex -o g list").ok();
    dir.run("add g md5").ok();
    assert_eq!(dir.run("check -c g md5").text(), "1\n");
}

#[test]
fn passwords_that_are_refused_are_not_shown() {
    let dir = TestDir::new();
    dir.write("ntlm", "8846F7EAEE8FB117AD06BDD830B7586C\n");
    dir.run("build --query-transform ntlm -o f ntlm").ok();
    dir.write("latin1", b"p\xe4ssword\n".as_slice());
    failed(
        dir.run("check f latin1"),
        "latin1: the line at byte 0 (line 1): found 8 bytes, expected UTF-8, which ntlm hashes",
    );
}

#[test]
fn lists_with_counts_are_read_without_them() {
    let (dir, hashes) = (TestDir::new(), hashes());
    let counted: String = hashes.iter().map(|key| format!("{key}:3\r\n")).collect();
    dir.write("list", format!("{counted}{}:0\r\n", "0".repeat(40)));
    dir.write("keys", lines(&hashes));
    dir.write("padding", format!("{}\n", "0".repeat(40)));
    dir.run("build --type static --counts -o f list").ok();
    assert_eq!(dir.run("check -c f keys").text(), "10\n");
    code(&dir, "check f padding", 1);
    dir.run("build --type static -o same keys").ok();
    let read = |name: &str| std::fs::read(dir.path(name)).unwrap();
    assert!(read("f") == read("same"));
    // As a stream, compressed, and with a type that counts lines first.
    dir.run_with("build --counts --type static -o f", &read("list")).ok();
    assert!(read("f") == read("same"));
    dir.run("build --counts -o f list").ok();
    assert!(dir.run("info f").text().contains("10"));
    assert_eq!(dir.run("check -c f keys").text(), "10\n");
    dir.write("bad", format!("{counted}{}\n", hashes[0]));
    failed(
        dir.run("build --counts --type static -o f bad"),
        "bad: the line at byte 440 (line 11) has no count after its key; expected lines of KEY:COUNT",
    );
    code(&dir, "build --counts -z -o f list", 2);
    code(&dir, "build --counts --column 1 -o f list", 2);
}

#[test]
fn ranges_are_files_named_by_the_first_digits() {
    let (dir, hashes) = (TestDir::new(), hashes());
    std::fs::create_dir(dir.path("ranges")).unwrap();
    for (at, key) in hashes.iter().enumerate() {
        // All keys begin with the same digits.
        let key = format!("{at:05X}{}", &key[5..]);
        dir.write(&format!("ranges/{}.txt", &key[..5]), format!("{}:7\r\n{:035}:0", &key[5..], 1));
    }
    let keys: Vec<_> = (0..10).map(|at| format!("{at:05X}{}", &hashes[at][5..])).collect();
    dir.write("keys", lines(&keys));
    dir.run("build --prefix-from-name --type static -o f ranges/").ok();
    dir.run("build --type static -o same keys").ok();
    let read = |name: &str| std::fs::read(dir.path(name)).unwrap();
    assert!(read("f") == read("same"));
    dir.run("build --prefix-from-name -o one ranges/00001.txt").ok();
    assert_eq!(dir.run("check one keys").text(), format!("{}\n", keys[1]));
    dir.write("ranges/README", "text\n");
    failed(
        dir.run("build --prefix-from-name -o f ranges"),
        "ranges/README: its name is not five hexadecimal digits and .txt, as in 0A1B2.txt; name only \
         the files of the list, or a directory that has no others",
    );
    assert!(dir.run("build --counts -o f ranges").err.contains("ranges: is a directory"));
    dir.write("ranges/README", "");
    std::fs::remove_file(dir.path("ranges/README")).unwrap();
    dir.write("ranges/0000F.txt", "ABC:1\n");
    failed(
        dir.run("build --prefix-from-name -o f ranges"),
        "ranges/0000F.txt: the line at byte 0 (line 1) has 3 digits before its count, others have 35; \
         expected lines of KEY:COUNT",
    );
}

#[test]
fn hashes_of_the_software_library_are_read() {
    let (dir, hashes) = (TestDir::new(), hashes());
    let header =
        r#""SHA-1","MD5","CRC32","FileName","FileSize","ProductCode","OpSystemCode","SpecialCode""#;
    let mut text = format!("{header}\r\n");
    for (at, key) in hashes.iter().enumerate() {
        let name = ["a.txt", "b, \"\"c\"\".txt"][at % 2];
        let md5 = &key[..32];
        text.push_str(&format!(
            "\"{key}\",\"{md5}\",\"01234567\",\"{name}\",{at},{at},\"362\",\"\"\r\n"
        ));
    }
    dir.write("NSRLFile.txt", &text);
    dir.write("keys", lines(&hashes).to_lowercase());
    dir.run("build --column SHA-1 --type static -o f NSRLFile.txt").ok();
    assert_eq!(dir.run("check -c f keys").text(), "10\n");
    assert_eq!(dir.run("check --column SHA-1 -c f NSRLFile.txt").text(), "10\n");
    // The database of version 3, through a pipe.
    let db = dir.path("rds.db");
    let insert: String =
        hashes.iter().map(|key| format!("INSERT INTO FILE VALUES('{key}');")).collect();
    let sqlite = |options: &[&str], sql: &str| {
        Command::new("sqlite3").args(options).arg(&db).arg(sql).output()
    };
    let create = format!("CREATE TABLE FILE(sha1 VARCHAR);{insert}{insert}");
    // Systems without the program have nothing to pipe.
    let Ok(_) = sqlite(&[], &create) else { return };
    let printed = sqlite(&["-readonly"], "SELECT DISTINCT sha1 FROM FILE").unwrap().stdout;
    dir.run_with("build --type static -o piped", &printed).ok();
    assert_eq!(dir.run("check -c piped keys").text(), "10\n");
}

#[test]
fn hashes_in_checksum_files_are_looked_up() {
    let (dir, hashes) = (TestDir::new(), hashes());
    dir.write("list", lines(&hashes[..8]));
    dir.run("build --type static -o f list").ok();
    let [known, new] = [&hashes[0].to_lowercase(), &hashes[9].to_lowercase()];
    let known_lines = [
        format!("{known}  a file"),
        format!("{known} *binary"),
        format!("\\{known}  two\\nlines"),
        format!("SHA1 (a (file)) = {known}"),
        format!("12,{},{known},/a,b", &new[..32]),
    ];
    let comments = "%%%% HASHDEEP-1.0\n%%%% size,md5,sha1,filename\n## $ hashdeep\n";
    let text: String = known_lines
        .iter()
        .map(|line| format!("{line}\n{}\n", line.replace(&known[..], new)))
        .collect();
    dir.write("sums", format!("{comments}{text}"));
    let printed: String = known_lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(dir.run("check --sums f sums").text(), printed);
    let unknown = printed.replace(&known[..], new);
    assert_eq!(dir.run("check --sums -v f sums").text(), unknown);
    assert_eq!(dir.run("check --sums -c f sums").text(), "5\n");
    // Other hashes, and other files.
    dir.write("md5", format!("{known}  a\n{}  a file\n", &known[..32]));
    let output = dir.run("check --sums f md5");
    let expected = "md5: the line at byte 44 (line 2): found 32 hexadecimal digits, expected 40";
    assert!(output.err.contains(expected), "{}", output.err);
    failed(
        dir.run("check --sums f list"),
        "list: the line at byte 0 (line 1): found 40 hexadecimal digits, expected a hash and a file \
         name; leave out --sums",
    );
    code(&dir, "check --sums --column 1 f list", 2);
    // Hashes of different lengths in one line.
    dir.write("short", lines(&[hashes[9][..32].to_owned()]));
    dir.run("build --type static -o md5.f short").ok();
    failed(
        dir.run("check --sums --filter md5.f --filter f sums"),
        "--sums: the hashes of md5.f have 32 digits, those of f have 40; ask one filter at a time",
    );
    let [word, both] =
        ["check --sums --filter words.f --filter f", "check --sums --filter f --filter f"];
    dir.write("words", "password\n");
    dir.run("build -p 1e-6 -o words.f words").ok();
    for args in [word, both] {
        assert_eq!(dir.run(&format!("{args} sums")).text(), printed, "{args}");
    }
    // A filter that hashes its queries.
    dir.run("build --type static --query-transform sha1 -o pwned.f list").ok();
    dir.run("build --type static --key-transform sha1 -o sha1.f words").ok();
    assert_eq!(dir.run("check --sums pwned.f sums").text(), printed);
    code(&dir, "check --sums sha1.f sums", 1);
    dir.write("password", "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8  a\n");
    dir.run("check --sums sha1.f password").ok();
    failed(
        dir.run("check --sums --key-transform sha1 pwned.f sums"),
        "--sums: queries of pwned.f are changed by 'sha1', which would hash the hashes; leave out \
         --key-transform",
    );
    let as_they_are = "check --key-transform uppercase pwned.f";
    assert_eq!(dir.run(&format!("{as_they_are} --sums sums")).text(), printed);
    assert_eq!(dir.run(&format!("{as_they_are} list")).text(), lines(&hashes[..8]));
    let output = dir.run("check --key-transform md5 pwned.f words");
    assert!(output.err.contains("found 32 hexadecimal digits, expected 40"), "{}", output.err);
    // Filters of passwords keep no digests, and those of whole lines none that are found.
    let output = dir.run("check --sums words.f sums");
    let warning = "petal: warning: the keys of words.f are not hashes of one length; if it was built from lines with more \
                   than a hash, build it with --column or --counts\n";
    assert_eq!((output.code, &*output.err), (Some(1), warning));
}

#[test]
fn lists_whose_lines_are_not_the_hashes_are_refused() {
    let (dir, hashes) = (TestDir::new(), hashes());
    let lower: Vec<_> = hashes.iter().map(|hash| hash.to_lowercase()).collect();
    dir.write("list", lines(&[&hashes[..1], &lower[1..3]].concat()));
    let at = |byte| format!("other: the line at byte {byte} (line {})", byte / 41 + 1);
    let expected = "expected 40 hexadecimal digits, as the keys of the filter";
    let column = "take the column of the hashes with --column";
    let others = [
        (format!("{}:3", hashes[0]), 0, "--counts", "use --counts for lines of HASH:COUNT"),
        (format!("{}\n{},a", hashes[0], hashes[1]), 41, "--column", column),
        (format!("\"SHA-1\",\"FileName\"\n\"{}\",\"a\"", hashes[0]), 0, "--column", column),
        (format!("{}  a file", lower[0]), 0, "--column", column),
        (format!("{}\n{}", hashes[0], &hashes[1][..32]), 41, "32", column),
    ];
    for filter_type in ["bloom", "static", "scalable"] {
        let build = format!("build --type {filter_type} --query-transform sha1 -o f");
        dir.run(&format!("{build} list")).ok();
        for (other, byte, names, advice) in &others {
            dir.write("other", format!("{other}\n"));
            let error = dir.run(&format!("{build} -o new other")).failure();
            let is_named = [&*at(*byte), expected, names, advice].map(|text| error.contains(text));
            assert_eq!(is_named, [true; 4], "{error}");
            assert!(!dir.files.file("new").exists());
            if filter_type != "static" {
                let error = dir.run("add f other").failure();
                assert!(error.contains(&at(*byte)) && error.contains(expected), "{error}");
            }
        }
    }
    // The digits may have any case, also of hashes that are added.
    dir.write("more", lines(&hashes[3..5]));
    dir.run("add f more").ok();
    dir.write("upper", lines(&hashes[..5]));
    assert_eq!(dir.run("check -c --key-transform lowercase f upper").text(), "5\n");
    // What was hashed already is as it should be.
    dir.write("words", "password\n");
    dir.run("build --key-transform sha1 --query-transform sha1 -o own words").ok();
    dir.run("check own words").ok();
}

#[test]
fn hashes_and_cr_that_are_hashed_are_warned_of() {
    let dir = TestDir::new();
    let password = "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8\n";
    dir.write("list", password);
    dir.run("build --query-transform sha1 -o f list").ok();
    let again = "petal: warning: the lines of standard input look like results of sha1 and are hashed again; if \
                 they are the hashes, use --key-transform lowercase\n";
    let cr = "petal: warning: the lines of standard input end with CRLF, and sha1 hashes the CR; remove it with \
              --key-transform strip-cr,sha1\n";
    let some = format!("{password}word\n");
    let cases = [(password, again), ("password\r\nword\r\n", cr), (&*some, ""), ("\n", "")];
    for (keys, warning) in cases {
        let output = dir.run_with("check f", keys.as_bytes());
        assert_eq!((output.code, &*output.err), (Some(1), warning), "{keys}");
    }
    let stripped = dir.run_with("check -c --key-transform strip-cr,sha1 f", b"password\r\n");
    assert_eq!((&*stripped.out, &*stripped.err), (&b"1\n"[..], ""));
    // A list that is hashed when the filter is built.
    let output = dir.run_with("build -n 10 --key-transform sha1 -o own", password.as_bytes());
    assert_eq!((output.code, &*output.err), (Some(0), again));
}
