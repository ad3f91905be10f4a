//! Completions and man pages, made of the very definitions that parse the command line.

use std::io::{self, Write as _};

use clap::{Command, CommandFactory as _};
use clap_complete::shells;
use clap_mangen::Man;

use super::{Petal, Shell};

/// A script that completes the words of the command line.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut command = Petal::command();
    let mut script = Vec::new();
    let out = &mut script;
    match shell {
        Shell::Bash => clap_complete::generate(shells::Bash, &mut command, "petal", out),
        Shell::Zsh => clap_complete::generate(shells::Zsh, &mut command, "petal", out),
        Shell::Fish => clap_complete::generate(shells::Fish, &mut command, "petal", out),
    }
    script
}

/// All man pages, each with the name of its file; the main one first.
pub(crate) fn man_pages() -> Vec<(String, Vec<u8>)> {
    let mut command = Petal::command();
    // Only then do the verbs know their whole names.
    command.build();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let all = std::iter::once(&command).chain(verbs);
    all.map(|command| {
        let mut page = Vec::new();
        // Writing into memory does not fail.
        let _ = render(command, &mut page);
        (Man::new(command.clone()).get_filename(), page)
    })
    .collect()
}

fn render(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    // Examples are lines, not text to be filled: the generator's own section would run them on.
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone().after_help(""))
        // The same page at any time; a field that is empty would be dropped and the rest move up.
        .date(" ")
        .source(concat!("petal ", env!("CARGO_PKG_VERSION")))
        .manual("petal");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    page.extend_from_slice(b".SH EXAMPLES\n.nf\n");
    for line in help.strip_prefix("Examples:\n").unwrap_or(&help).lines() {
        // No line may look like a request, no hyphen become a dash.
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        writeln!(page, "\\&{line}")?;
    }
    page.extend_from_slice(b".fi\n");
    Ok(())
}
