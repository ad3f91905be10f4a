//! Examples for each verb, as `--help` shows them; a test has them all parsed.

pub(super) const COMMON_EXAMPLES: &str = "\
Examples:
  petal common a.txt b.txt                 exact, in a.txt's order
  petal common -m 4G -T /big a.txt b.txt   within 4 GiB; temporary data goes to /big
  petal common -c a.txt b.txt c.txt        how many lines are in all three
  petal common a.gz b.zst                  gzip and zstd are read as they are
  sort -u x | petal common - b.txt         a pipe as input
  petal common --work-dir w --resume a b   keeps its work in w; killed, the same words go on
  petal common --approx a.txt b.txt        one pass; a few wrong lines, none missing";
pub(super) const DIFF_EXAMPLES: &str = "\
Examples:
  petal diff today.txt yesterday.txt       what is new today
  petal diff all.txt done-*.txt -o todo    what none of the others has";
pub(super) const DEDUP_EXAMPLES: &str = "\
Examples:
  petal dedup urls.txt                     each line once, first appearances, no sorting
  cat *.log | petal dedup -c               how many distinct lines
  petal dedup -m 512M big.txt -o once.txt  within 512 MiB
  petal dedup a --dupes-output again       what comes again goes to a file of its own";
pub(super) const BUILD_EXAMPLES: &str = "\
Examples:
  petal build -o seen.petal urls.txt            1 % false positives; lines are counted first
  petal build -o seen.petal -p 0.1% urls.txt    another rate
  petal build -o seen.petal -m 64M urls.txt     the best rate that fits 64 MiB
  fetch | petal build -o seen.petal -n 5e6 -    a pipe cannot be counted: say how many
  petal build -o live.petal --type counting a   lines can be removed again
  fetch | petal build -o all.petal --growing -  keeps its rate for any number of lines
  petal build -o week.petal --window 7d -n 1e6 a
                                                forgets what has not come for a week
  petal build -o least.petal --type static a    never changed again: the least space
  petal build -o bad.petal --not-in good.txt bad.txt
                                                certain about every line of both
  petal build -o users.bf --format guava --as int64 ids.txt
                                                another program's: Guava's BloomFilter.readFrom

Formats: parquet, guava, guava-32, spark-v1, spark-v2, redisbloom, dcso, go-bloom, squid-digest,
datasketches, rbloom, hadoop-jenkins, hadoop-murmur, pybloom, filter-cascade (with --not-in).
docs/interop.md tells what each can hold.";
pub(super) const ADD_EXAMPLES: &str = "\
Examples:
  petal add seen.petal more.txt
  tail -n 1000 log | petal add seen.petal -
  petal add --as int64 --probe-known old.txt users.bf new.txt
                                           another program's filter, whose keys are numbers";
pub(super) const REMOVE_EXAMPLES: &str = "\
Examples:
  petal remove live.petal closed.txt
  petal remove live.petal closed.txt --missing unknown.txt

Take out only lines that were put in: a line that the filter merely seems to hold is taken out as
well, and others with it.";
pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  petal check blocked.petal hosts.txt      lines that are blocked (with p false alarms)
  petal check -v seen.petal urls.txt       lines that are certainly new
  petal check -c seen.petal urls.txt       just how many hit
  petal check --allow fine.txt blocked.petal hosts.txt
                                           but none of the false alarms listed in fine.txt
  petal check hashlookup.bloom sums.txt    another program's filter: most are recognised
  petal check --as int64 --probe-known some.txt users.bf ids.txt
                                           keys are numbers; those of some.txt must all be found
  petal check --format squid-digest digest urls.txt
                                           what a Squid cache tells its siblings";
pub(super) const PROBE_EXAMPLES: &str = "\
Examples:
  petal probe --column url --keys bad.txt lake/day-01.parquet lake/day-02.parquet
                                           files that may hold any of these URLs
  find lake -name *.parquet | petal probe --column url --keys bad.txt --files-from -
                                           any number of files
  petal probe --column user.id --keys ids.txt --row-groups part.parquet
                                           just the row groups that must be read
  petal probe --column url --keys bad.txt -v lake/day-01.parquet
                                           files that certainly hold none

Only Bloom filters are read. Files without one for the column count as holding anything.";
pub(super) const SEEN_EXAMPLES: &str = "\
Examples:
  petal seen -n 1e6 urls.petal today.txt          the first run says how many lines in all
  petal seen urls.petal tomorrow.txt >> new.txt   what no run has printed yet
  tail -f log | petal seen -n 1e8 log.petal       prints and remembers as lines come
  petal seen --window 7d -n 1e6 due.petal urls    what was not printed within a week
  petal seen --exact -n 1e6 ids.petal ids.txt     withholds no line, at 16 bytes a line on disk

A new line is withheld with the filter's false-positive rate (-p) unless --exact. After a crash a
line may be printed again; none is lost.

Exit codes: 0 done, 2 trouble, 130 ended by Ctrl-C or SIGTERM, with what was printed saved.";
pub(super) const MERGE_EXAMPLES: &str = "\
Examples:
  petal merge -o week.petal mon.petal tue.petal wed.petal";
pub(super) const SHRINK_EXAMPLES: &str = "\
Examples:
  petal shrink big.petal -o small.petal            what the planned rate does not need goes
  petal shrink big.petal -o small.petal -p 2%      as small as 2 % false positives allow
  petal shrink big.petal -o small.petal --by 4     a quarter of the size";
pub(super) const FREEZE_EXAMPLES: &str = "\
Examples:
  petal freeze live.petal -o copy.petal            a quarter of the size, to be asked elsewhere";
pub(super) const COMPARE_EXAMPLES: &str = "\
Examples:
  petal compare mon.petal tue.petal
  petal compare --json mon.petal tue.petal | jq .jaccard.value";
pub(super) const INFO_EXAMPLES: &str = "\
Examples:
  petal info seen.petal
  petal info users.bf                      of another program: and what its format does not tell
  petal info --json seen.petal | jq .rate_now";
pub(super) const VERIFY_EXAMPLES: &str = "\
Examples:
  petal verify seen.petal && echo sound";
pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  petal plan -n 5e9 -m 4G        the rate that 4 GiB give for 5 billion keys
  petal plan -n 1e6 -p 0.1%      the memory that 0.1 % takes
  petal plan -m 64M -p 1%        how many keys fit
  petal plan -n 1e6 -p 1% -k 4   with 4 probes
  petal plan common a.txt b.txt -m 4G
                                 passes, bytes, candidates and time of that job";
pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  petal completions bash > ~/.local/share/bash-completion/completions/petal
  petal completions zsh > ~/.zfunc/_petal
  petal completions fish > ~/.config/fish/completions/petal.fish";
pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  petal man | man -l -
  petal man --dir ~/.local/share/man/man1";
