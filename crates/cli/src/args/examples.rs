//! The examples in the help of each command; a test parses all of them.

pub(super) const COMMON_EXAMPLES: &str = "\
Examples:
  petal common a.txt b.txt                 exact, in the order of a.txt
  petal common -m 4G -T /big a.txt b.txt   4 GiB of memory, spill to /big
  petal common -c a.txt b.txt c.txt        count the lines that are in all three
  petal common --at-least 2 a b c d        lines of a in two or more of b, c, d
  petal common a.csv b.tsv --column url    records with the same url
  petal common a.csv#url b.jsonl#/id c#    each with a key of its own
  petal common a.gz b.zst                  gzip, zstd, xz, bzip2 and lz4 inputs
  sort -u x | petal common - b.txt         read a pipe
  petal common --work-dir w --resume a b   if interrupted, run it again
  petal common --key-transform trim,lowercase a b
                                           other case, other spaces: equal
  petal common --approx a.txt b.txt        one pass; may print extra lines";
pub(super) const DIFF_EXAMPLES: &str = "\
Examples:
  petal diff today.txt yesterday.txt       lines that are new today
  petal diff all.txt done-*.txt -o todo    lines that no other file contains
  petal diff all.txt --recursive done      the files of a directory
  petal diff all.txt --files-from names    the files of a list";
pub(super) const SYMDIFF_EXAMPLES: &str = "\
Examples:
  petal symdiff old.txt new.txt            removed lines, then added lines
  petal symdiff -c a.txt b.txt             0 if both have the same lines
  petal symdiff -m 512M a.gz b.gz -o d     512 MiB of memory, into a file";
pub(super) const DEDUP_EXAMPLES: &str = "\
Examples:
  petal dedup urls.txt                     each line once, in input order
  petal dedup --key-transform url-surt urls.txt
                                           one of the spellings of each URL
  cat *.log | petal dedup -c               count distinct lines
  petal dedup -d a.txt b.txt               lines that occur at least twice
  petal dedup -u a.txt b.txt               lines that occur exactly once
  petal dedup -m 512M big.txt -o once.txt  with 512 MiB of memory
  find . -print0 | petal dedup -0          lines that end in NUL
  petal dedup a.csv --column url,lang      the first record of each pair
  petal dedup a.jsonl --json-key /user/id  the first line of each user
  find . -name '*.txt' -print0 | petal dedup --files0-from -
                                           the lines of all these files
  petal dedup a --dupes-output again       also write the repeated lines
  petal dedup *.jsonl --json-key /text --unit line -o out
                                           texts without repeated lines";
pub(super) const COUNT_EXAMPLES: &str = "\
Examples:
  petal count access.log                   in the order of first appearance
  petal count --top 20 access.log          the 20 most frequent lines
  petal count --sort count -m 512M urls    all, the most frequent first
  petal count --min-count 2 a.txt b.txt    only lines that are repeated
  petal count --top 9 --key-transform host urls.txt
                                           hosts, each shown by its first URL

Each output line is the number, a tab and the line.";
pub(super) const BUILD_EXAMPLES: &str = "\
Examples:
  petal build -o seen.petal urls.txt            1 % false positives
  petal build -o seen.petal -p 0.1% urls.txt    0.1 % false positives
  petal build -o seen.petal --size 64M urls.txt  the lowest rate that fits 64 MiB
  petal build -o seen.petal --type classic -k 10 --bits 2e9 urls.txt
                                                a textbook filter: m and k chosen
  fetch | petal build -o seen.petal -n 5e6 -    a pipe needs a capacity
  petal build -o live.petal --type counting a   supports `petal remove`
  fetch | petal build -o all.petal --growing -  for any number of lines
  petal build -o week.petal --window 7d -n 1e6 a
                                                forgets lines after a week
  petal build -o small.petal --type static a    immutable, the smallest
  petal build -o bad.petal --not-in good.txt bad.txt
                                                exact for lines of both files
  petal build -o users.bf --format guava --key-type int64 ids.txt
                                                for Guava's BloomFilter.readFrom

Formats: parquet, guava, guava-32, spark-v1, spark-v2, redisbloom, dcso,
poppy, go-bloom, squid-digest, datasketches, rbloom, hadoop-jenkins,
hadoop-murmur, pybloom, filter-cascade (with --not-in).
The documentation has the limits of each format (reference/interop.md).";
pub(super) const ADD_EXAMPLES: &str = "\
Examples:
  petal add seen.petal more.txt
  tail -n 1000 log | petal add seen.petal -
  petal add --key-type int64 --assert-members old.txt users.bf new.txt
                                           for another program, integer keys";
pub(super) const REMOVE_EXAMPLES: &str = "\
Examples:
  petal remove live.petal closed.txt
  petal remove live.petal closed.txt --missing unknown.txt

Remove only lines that were added. Removing a false positive also removes other
lines.";
pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  petal check blocked.petal hosts.txt      lines that may be in the filter
  petal check -v seen.petal urls.txt       lines that are certainly new
  petal check -c seen.petal urls.txt       count the lines that match
  petal check --allow fine.txt blocked.petal hosts.txt
                                           except known false positives
  petal check --filter bad.petal --filter worse.petal --which hosts.txt
                                           lines after the filters' names
  petal check --sums known.petal sums.txt  files of sha1sum's output
  petal check --key-transform lowercase pwned.petal hashes.txt
                                           hashes, where it hashes passwords
  petal check --sums --key-transform uppercase hashlookup.bloom sums.txt
                                           a filter of another program
  petal check --key-type int64 --assert-members some.txt users.bf ids.txt
                                           integer keys; some.txt must match
  petal check --format squid-digest digest urls.txt
                                           the cache digest of a Squid proxy";
pub(super) const PROBE_EXAMPLES: &str = "\
Examples:
  petal probe --column url --keys bad.txt lake/day-1.parquet lake/day-2.parquet
                                           files that may contain these URLs
  petal probe --column url --keys bad --recursive --glob '*.parquet' lake
                                           the files of a directory
  petal probe --column user.id --keys ids.txt --row-groups part.parquet
                                           row groups that must be read
  petal probe --column url --keys bad.txt -v lake/day-1.parquet
                                           files that certainly contain none

Only Bloom filters are read. A file without one for the column may contain any
key.";
pub(super) const SEEN_EXAMPLES: &str = "\
Examples:
  petal seen -n 1e6 urls.petal today.txt          the first run needs a capacity
  petal seen urls.petal tomorrow.txt >> new.txt   lines that are new
  petal seen --follow -n 1e8 log.petal app.log    new lines as they arrive
  petal seen --window 7d -n 1e6 due.petal urls    lines not printed for a week
  petal seen --exact -n 1e6 ids.petal ids.txt     exact; 21 bytes per line

Without --exact, a new line is dropped with the false-positive rate of the
filter (-p). After a crash a line may be printed again, but none is lost.

Exit codes: 0 done, 2 error, 130 ended by Ctrl-C or SIGTERM (printed lines are
saved).";
pub(super) const MERGE_EXAMPLES: &str = "\
Examples:
  petal merge -o week.petal mon.petal tue.petal wed.petal";
pub(super) const SHRINK_EXAMPLES: &str = "\
Examples:
  petal shrink big.petal -o small.petal             keep the target rate
  petal shrink big.petal -o small.petal -p 2%       allow 2 % false positives
  petal shrink big.petal -o small.petal --factor 4  a quarter of the size";
pub(super) const FREEZE_EXAMPLES: &str = "\
Examples:
  petal freeze live.petal -o copy.petal   a quarter of the size, for lookups";
pub(super) const COMPARE_EXAMPLES: &str = "\
Examples:
  petal compare mon.petal tue.petal
  petal compare --json mon.petal tue.petal | jq .jaccard.value";
pub(super) const INFO_EXAMPLES: &str = "\
Examples:
  petal info seen.petal
  petal info users.bf                      a filter of another program
  petal info --json seen.petal | jq .estimated_fpr
  petal info seen.petal --html seen.html   a page with charts";
pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  petal explain seen.petal https://example.org/
  petal explain --json seen.petal 42 | jq .parts[0].probes";
pub(super) const VERIFY_EXAMPLES: &str = "\
Examples:
  petal verify seen.petal && echo valid";
pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  petal plan -n 5e9 --size 4G    false-positive rate of 5 billion keys in 4 GiB
  petal plan -n 1e6 -p 0.1%      memory for 1 million keys at 0.1 %
  petal plan --size 64M -p 1%    number of keys that fit 64 MiB at 1 %
  petal plan -n 1e6 -p 1% -k 4   with 4 probes
  petal plan -n 1e6 -p 0.1% --least-space
                                 the smallest filter, which is slower
  petal plan --type classic -k 10 --bits 2e9
                                 rate and best capacity of a textbook filter
  petal plan common a.txt b.txt -m 4G
                                 passes, bytes and time of that job
  petal plan dedup a.csv --column url
                                 of a job on a column
  petal plan -n 1e6 -p 1% --html plan.html
                                 a page with the rate by number of keys";
pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  petal common a.txt b.txt -o both.txt --report both.json
  petal report both.json
  petal report both.json --html both.html";
pub(super) const HELP_EXAMPLES: &str = "\
Examples:
  petal help
  petal help build";
pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  petal completions bash > ~/.local/share/bash-completion/completions/petal
  petal completions zsh > ~/.zfunc/_petal
  petal completions fish > ~/.config/fish/completions/petal.fish";
pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  petal man | man -l -
  petal man --dir ~/.local/share/man/man1";
