//! `signalbox man`: the manual pages, generated from the definition of the command line.

use crate::cli::{Cli, ManArgs};
use crate::failure::Failure;
use crate::output;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Prints the main page, or writes all of them to a folder.
pub(super) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    // Building gives every command its full name and the global flags.
    command.build();
    match &args.out {
        None => output::result(&String::from_utf8_lossy(&page(&command).map_err(Failure::Output)?))?,
        Some(folder) => {
            let fail = |path: &Path, error| Failure::File { path: path.to_owned(), error };
            std::fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
            for (name, page) in pages(&command, "").map_err(|error| fail(folder, error))? {
                let path = folder.join(format!("{name}.1"));
                std::fs::write(&path, page).map_err(|error| fail(&path, error))?;
                output::result(&format!("{}\n", path.display()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Renders the pages of a command and its subcommands, each with its name: `signalbox`, `signalbox-tools`,
/// `signalbox-tools-call`.
fn pages(command: &Command, above: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let name = if above.is_empty() { command.get_name().to_owned() } else { format!("{above}-{}", command.get_name()) };
    let mut all = vec![(name.clone(), page(&command.clone().display_name(name.clone()))?)];
    for below in command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set()) {
        all.extend(pages(below, &name)?);
    }
    Ok(all)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
