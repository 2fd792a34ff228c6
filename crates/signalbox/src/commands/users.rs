//! `signalbox users`: people who can sign in at the gateway's own authorization server.

use crate::cli::{Global, UsersCommand};
use crate::commands::data_dir;
use crate::failure::Failure;
use crate::output;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use signalbox_assembly::user_file::UserFile;
use signalbox_authorization::password::{LocalUser, MAX_PASSWORD};
use signalbox_control::table;
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::timestamp;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Stdin, Write as _};
use std::process::ExitCode;

/// Does it.
pub(super) fn run(global: &Global, command: UsersCommand) -> Result<ExitCode, Failure> {
    let file = UserFile::of(&data_dir(global)?);
    match command {
        UsersCommand::Add { name, replace } => add(&file, &name, replace),
        UsersCommand::List => list(global, &file),
        UsersCommand::Remove { name } => remove(&file, &name),
    }
}

fn add(file: &UserFile, name: &str, replace: bool) -> Result<ExitCode, Failure> {
    if file.load()?.knows(name) != replace {
        return Err(Failure::Usage(match replace {
            true => format!("there is no user `{name}`; leave out `--replace` to add one"),
            false => format!("there is a user `{name}` already; `--replace` gives another password"),
        }));
    }
    let password = password().map_err(|error| Failure::Usage(format!("cannot read a password: {error}")))?;
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| Failure::Usage(format!("the system gives no randomness: {error}")))?;
    file.change(|users| users.set(name, &password, &salt, unix_millis()))?;
    output::say(format!("`{name}` can sign in as user:{name}"));
    Ok(ExitCode::SUCCESS)
}

fn list(global: &Global, file: &UserFile) -> Result<ExitCode, Failure> {
    let users = file.load()?;
    let principal = |name: &str| format!("user:{name}");
    if global.json {
        let row = |(name, user): (&str, &LocalUser)| json!({"name": name, "principal": principal(name), "created": timestamp::rfc3339_millis(user.created)});
        output::result(&format!("{}\n", Value::from(users.iter().map(row).collect::<Vec<_>>())))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |(name, user): (&str, &LocalUser)| {
        vec![table::harmless(name), principal(name), timestamp::rfc3339_millis(user.created)]
    };
    let rows: Vec<Vec<String>> = users.iter().map(row).collect();
    let text = match rows.is_empty() {
        true => "there is no user; `signalbox users add NAME` adds one\n".to_owned(),
        false => table::render(&["NAME", "PRINCIPAL", "CREATED"], &rows),
    };
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn remove(file: &UserFile, name: &str) -> Result<ExitCode, Failure> {
    if !file.change(|users| Ok(users.remove(name)))? {
        return Err(Failure::Usage(format!("there is no user `{name}`; `signalbox users list` shows all")));
    }
    output::say(format!("removed `{name}`"));
    Ok(ExitCode::SUCCESS)
}

/// The password: typed twice on a terminal, which does not show it, else the first line of standard input.
fn password() -> io::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return line(&stdin);
    }
    let _hidden = Hidden::new()?;
    let ask = |text: &str| {
        let mut stderr = io::stderr();
        write!(stderr, "{text}: ")?;
        stderr.flush()?;
        let typed = line(&stdin);
        writeln!(stderr)?;
        typed
    };
    let (first, second) = (ask("Password")?, ask("Once more")?);
    match first == second {
        true => Ok(first),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "the two are not the same")),
    }
}

fn line(stdin: &Stdin) -> io::Result<String> {
    let mut text = String::new();
    stdin.lock().take(MAX_PASSWORD as u64 + 3).read_line(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &self.0);
    }
}
