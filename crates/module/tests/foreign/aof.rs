//! The append-only file: what it replays is what was there, to the bit; nothing acknowledged is lost.

use crate::server::{Server, Setup, until};
use crate::zoo;

const ALWAYS: &str = "--appendonly yes --appendfsync always";
const COMMANDS: &str = "--aof-use-rdb-preamble no";

pub(crate) fn rewrite(server: &Server) {
    let size = server.info("aof_current_size");
    server.ask("BGREWRITEAOF");
    until("the log is rewritten", || {
        server.info("aof_rewrite_in_progress") == "0"
            && server.info("aof_rewrite_scheduled") == "0"
            && server.info("aof_current_size") != size
    });
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn the_log_is_replayed_to_the_bit() {
    for setup in [Setup::new(), Setup::compat()] {
        let mut server = setup.words(ALWAYS).start();
        let zoo = zoo::filled(&server, 3000);
        let digest = server.digest();
        server.restart();
        assert_eq!(server.digest(), digest);
        zoo.assert_members(&server);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn the_log_is_rewritten_as_commands_and_as_rdb() {
    for words in [COMMANDS, ""] {
        for setup in [Setup::new(), Setup::compat()] {
            let mut server = setup.words(ALWAYS).words(words).start();
            let zoo = zoo::filled(&server, 3000);
            let digest = server.digest();
            rewrite(&server);
            server.restart();
            assert_eq!(server.digest(), digest, "{words}");
            zoo.grow(&server, 300);
            let grown = server.digest();
            server.restart();
            assert_eq!(server.digest(), grown, "{words}");
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_large_filter_is_rewritten_in_commands_of_a_bounded_size() {
    for setup in [Setup::new(), Setup::compat()] {
        let mut server = setup.words(ALWAYS).words(COMMANDS).start();
        server.ask("BF.RESERVE large 0.001 30000000").ok();
        server.ask("BF.MADD large a b c");
        let digest = server.digest();
        rewrite(&server);
        server.restart();
        assert_eq!(server.digest(), digest);
        assert_eq!(server.ask("BF.MEXISTS large a b c d").ints(), [1, 1, 1, 0]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    for setup in [Setup::new(), Setup::compat()] {
        let mut server = setup.words(ALWAYS).start();
        let zoo = zoo::filled(&server, 2000);
        let digest = server.digest();
        server.kill();
        server.start();
        assert_eq!(server.digest(), digest);
        zoo.assert_members(&server);
        zoo.grow(&server, 100);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn adds_that_change_nothing_are_not_logged() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.words(ALWAYS).start();
        server.ask("BF.MADD filter a b c");
        server.ask("CF.INSERT cuckoo ITEMS a b");
        let size = server.info("aof_current_size");
        assert_eq!(server.ask("BF.ADD filter a").int(), 0);
        assert_eq!(server.ask("BF.MADD filter a b c").ints(), [0, 0, 0]);
        assert_eq!(server.ask("BF.INSERT filter ITEMS a b c").ints(), [0, 0, 0]);
        assert_eq!(server.ask("CF.ADDNX cuckoo a").int(), 0);
        assert_eq!(server.ask("CF.INSERTNX cuckoo ITEMS a b").ints(), [0, 0]);
        assert_eq!(server.ask("CF.DEL cuckoo nope").int(), 0);
        assert_eq!(server.info("aof_current_size"), size);
        server.ask("BF.ADD filter d");
        assert_ne!(server.info("aof_current_size"), size);
    }
}
