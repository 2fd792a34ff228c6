//! `signalbox users`: local users of the gateway's own authorization server.

use crate::cli::{Global, UsersCommand};
use crate::commands::{administration, credentials, data_dir, quietly};
use crate::failure::Failure;
use crate::output;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use signalbox_assembly::grants::GrantFile;
use signalbox_assembly::key_file::KeyFile;
use signalbox_assembly::seal_folder::{SealFolder, SealFolderError};
use signalbox_assembly::user_file::UserFile;
use signalbox_config::auth_server::LOCAL_USERS;
use signalbox_control::table;
use signalbox_oauth_server::password::{LocalUser, MAX_PASSWORD};
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::timestamp;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Stdin, Write as _};
use std::process::ExitCode;
use std::time::SystemTime;

pub(super) fn run(global: &Global, command: UsersCommand) -> Result<ExitCode, Failure> {
    let data_dir = data_dir(global)?;
    let files = AccountFiles {
        users: UserFile::of(&data_dir),
        keys: KeyFile::of(&data_dir),
        seal: SealFolder::of(&data_dir),
        grants: GrantFile::of(&data_dir),
    };
    match command {
        UsersCommand::Add { name, replace } => {
            let done = quietly(global, add(global, &files, &name, replace));
            let action = if replace { "user.password" } else { "user.add" };
            administration::tried(global, (action, &principal(&name)), done)
        }
        UsersCommand::List => list(global, &files.users),
        UsersCommand::Remove { name } => {
            // Users of an identity provider may be named as in policies and logs.
            let name = name.strip_prefix("user:").filter(|rest| rest.contains(':')).unwrap_or(&name).to_owned();
            let done = quietly(global, remove(global, &files, &name));
            administration::tried(global, ("user.remove", &principal(&name)), done)
        }
    }
}

/// Files of the data folder that hold credentials of a local user.
struct AccountFiles {
    users: UserFile,
    keys: KeyFile,
    seal: SealFolder,
    grants: GrantFile,
}

/// Returns the principal of a local user.
fn principal(name: &str) -> String {
    format!("{LOCAL_USERS}:{name}")
}

async fn add(global: &Global, files: &AccountFiles, name: &str, replace: bool) -> Result<ExitCode, Failure> {
    if files.users.load()?.knows(name) != replace {
        return Err(Failure::Usage(match replace {
            true => format!("there is no user `{name}`; leave out `--replace` to add one"),
            false => format!("there is a user `{name}` already; `--replace` gives another password"),
        }));
    }
    let password = password().map_err(|error| Failure::Usage(format!("cannot read a password: {error}")))?;
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| Failure::Usage(format!("the system gives no randomness: {error}")))?;
    files.users.change(|users| users.set(name, &password, &salt, unix_millis()))?;
    credentials::announce(global).await;
    let action = if replace { "user.password" } else { "user.add" };
    administration::note(global, (action, &principal(name)), None, None);
    output::say(format!("`{name}` can sign in as {}", principal(name)));
    if replace {
        output::say("all clients that were signed in have to sign in again");
        let (subject, now, kept) = (principal(name), unix_millis(), files.keys.load()?);
        let good: Vec<&str> = kept
            .iter()
            .filter(|(_, key)| key.subject == subject && key.fault(now).is_none())
            .map(|(id, _)| id)
            .collect();
        if !good.is_empty() {
            output::say(format!("API keys of {subject} stay good: {}", good.join(", ")));
        }
        let keys = files.seal.key_set().unwrap_or_default();
        let signing = keys.iter().filter(|key| key.name == subject && key.revoked_at.is_none());
        let signing: Vec<&str> = signing.map(|key| key.key.id()).collect();
        if !signing.is_empty() {
            output::say(format!("signing keys of {subject} stay good: {}", signing.join(", ")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(global: &Global, file: &UserFile) -> Result<ExitCode, Failure> {
    let users = file.load()?;
    if global.json {
        let row = |(name, user): (&str, &LocalUser)| json!({"name": name, "principal": principal(name), "created": timestamp::rfc3339_millis(user.created)});
        output::json(&Value::from(users.iter().map(row).collect::<Vec<_>>()))?;
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

async fn remove(global: &Global, files: &AccountFiles, name: &str) -> Result<ExitCode, Failure> {
    // Only names from an identity provider have a colon, and only the provider knows which exist.
    let is_of_provider = name.contains(':');
    if !is_of_provider && !files.users.load()?.knows(name) {
        return Err(Failure::Usage(format!("there is no user `{name}`; `signalbox users list` shows all")));
    }
    // Revoke keys first: if this process is killed in between, the user still exists and can be removed again.
    let subject = principal(name);
    let revoked = match files.keys.load()?.iter().any(|(_, key)| key.subject == subject) {
        true => files.keys.change(|keys| keys.revoke_subject(&subject, unix_millis()))?,
        false => Vec::new(),
    };
    let signing = revoke_signing_keys(&files.seal, &subject)?;
    let grants = revoke_grants(&files.grants, &subject)?;
    files.users.change(|users| {
        match is_of_provider {
            true => users.end_person(name, unix_millis()),
            false => _ = users.remove(name),
        }
        Ok(())
    })?;
    credentials::announce(global).await;
    let some = !revoked.is_empty() || !signing.is_empty() || !grants.is_empty();
    let after =
        some.then(|| json!({"revoked_keys": revoked, "revoked_signing_keys": signing, "revoked_grants": grants}));
    administration::note(global, ("user.remove", &subject), None, after);
    match is_of_provider {
        true => output::say(format!("all tokens of {subject} have ended; the provider decides who can sign in again")),
        false => output::say(format!("removed `{name}`; all tokens of {subject} have ended")),
    }
    if !revoked.is_empty() {
        output::say(format!("revoked the API keys of {subject}: {}", revoked.join(", ")));
    }
    if !signing.is_empty() {
        output::say(format!("revoked the signing keys of {subject}: {}", signing.join(", ")));
    }
    if !grants.is_empty() {
        output::say(format!("took away the grants of {subject}: {}", grants.join(", ")));
    }
    let backends = credentials::forget_backend_tokens(global, &subject).await?;
    if !backends.is_empty() {
        output::say(format!("forgot the tokens of {subject} for the backends {}", backends.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Revokes the signing keys of this principal, and returns their ids.
fn revoke_signing_keys(folder: &SealFolder, subject: &str) -> Result<Vec<String>, Failure> {
    let failed = |error: SealFolderError| Failure::Usage(format!("the signing keys: {error}"));
    if !folder.key_set().map_err(|error| failed(error.into()))?.iter().any(|key| key.name == subject) {
        return Ok(Vec::new());
    }
    let now = timestamp::seconds_of(SystemTime::now());
    folder.change_key_set(|keys| Ok::<_, SealFolderError>(keys.revoke_name(subject, now))).map_err(failed)
}

/// Revokes the grants of a principal: the next principal of the same name would inherit them. Running gateways follow
/// the file.
fn revoke_grants(file: &GrantFile, subject: &str) -> Result<Vec<String>, Failure> {
    if !file.load()?.0.iter().any(|grant| grant.to == subject) {
        return Ok(Vec::new());
    }
    let mut revoked = Vec::new();
    file.change(|all| {
        revoked = all.revoke_principal(subject);
        Ok(())
    })?;
    Ok(revoked)
}

/// Reads the password: typed twice on a terminal without echo, otherwise the first line of standard input.
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

/// Turns the echo of the terminal off until dropped.
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
