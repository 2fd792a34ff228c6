//! `signalbox import`: converts the configuration of a client or of a Sentinel gateway.

use crate::cli::ImportArgs;
use crate::failure::Failure;
use crate::output;
use signalbox_config::locate::MAX_FILE;
use signalbox_config::{import, sentinel};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

/// Converts the file and writes the result to standard output or to a new file.
pub(super) fn run(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let unreadable = |error: io::Error| Failure::Usage(format!("{}: {error}", args.file.display()));
    let json = read(&args.file).map_err(unreadable)?;
    let imported = match sentinel::is_sentinel(&json) {
        true => sentinel::import(&json, &args.file)?,
        false => import::import(&json, &args.file, &super::env)?,
    };
    for warning in &imported.warnings {
        output::say(format_args!("warning: {warning}"));
    }
    match output::file(args.output.as_ref()) {
        None => output::exact(&imported.toml)?,
        Some(path) => {
            write_new(path, &imported.toml).map_err(|error| failed(path, error))?;
            let path = path.display();
            output::say(format_args!("wrote {path}; check it with `signalbox check -c {path}`"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_FILE {
        return Err(io::Error::other(format!("the file is larger than {MAX_FILE} bytes")));
    }
    Ok(text)
}

/// Creates the file for the current user only: it may hold secrets of the client's file.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn failed(path: &Path, error: io::Error) -> Failure {
    if error.kind() == ErrorKind::AlreadyExists {
        return Failure::Usage(format!("{} exists already; name a new file, or remove it first", path.display()));
    }
    Failure::File { path: path.to_owned(), error }
}
