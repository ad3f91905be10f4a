//! Shell completions and man pages, generated from the argument definitions.

use std::io::{self, Write as _};

use clap::{Command, CommandFactory as _};
use clap_complete::shells;
use clap_mangen::Man;

use super::{Cli, Shell};

/// Returns the completion script of a shell.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut command = Cli::command().mut_subcommands(without_hidden);
    let mut script = Vec::new();
    let out = &mut script;
    match shell {
        Shell::Bash => clap_complete::generate(shells::Bash, &mut command, "petal", out),
        Shell::Zsh => clap_complete::generate(shells::Zsh, &mut command, "petal", out),
        Shell::Fish => clap_complete::generate(shells::Fish, &mut command, "petal", out),
    }
    script
}

/// Returns a command without its hidden options: completion scripts would contain them.
fn without_hidden(command: Command) -> Command {
    // Names are static. A script is printed once per process.
    let name: &'static str = String::from(command.get_name()).leak();
    let mut visible = Command::new(name);
    if let Some(about) = command.get_about() {
        visible = visible.about(about.clone());
    }
    for alias in command.get_visible_aliases() {
        visible = visible.visible_alias(String::from(alias).leak() as &'static str);
    }
    let visible = visible.args(command.get_arguments().filter(|arg| !arg.is_hide_set()));
    let is_visible = |id| visible.get_arguments().any(|arg| arg.get_id() == id);
    let groups = command.get_groups().filter(|group| group.get_args().all(is_visible));
    let groups: Vec<_> = groups.cloned().collect();
    visible.groups(groups)
}

/// Returns the man page of a command, or of the program; `None` if there is no such command.
pub(crate) fn man_page(name: Option<&str>) -> Option<Vec<u8>> {
    let command = program();
    let command = name.map_or(Some(&command), |name| command.find_subcommand(name));
    command.map(page)
}

/// Returns the file name and the text of each man page, the main page first.
pub(crate) fn man_pages() -> Vec<(String, Vec<u8>)> {
    let command = program();
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let all = std::iter::once(&command).chain(subcommands);
    all.map(|command| (Man::new(command.clone()).get_filename(), page(command))).collect()
}

/// Returns the definition of the program, whose subcommands have their full names.
fn program() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn page(command: &Command) -> Vec<u8> {
    let mut page = Vec::new();
    // Writing into memory does not fail.
    let _ = render(command, &mut page);
    page
}

fn render(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    // clap_mangen would join the lines of the examples into paragraphs.
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone().after_help(""))
        // A blank date makes the page reproducible; an empty one would shift the other fields.
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
        // Escapes what roff would take for a request or a dash.
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        writeln!(page, "\\&{line}")?;
    }
    page.extend_from_slice(b".fi\n");
    Ok(())
}
