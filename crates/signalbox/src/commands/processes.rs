//! The running processes that a command means, and how they are spoken to.

use crate::cli::{Global, Which};
use crate::failure::Failure;
use http::Method;
use serde_json::Value;
use signalbox_control::api::routes::STATUS;
use signalbox_control::control_socket::{AskError, ProcessAddress, send};

/// A running process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub address: ProcessAddress,
    pub pid: String,
}

impl Process {
    fn of(address: ProcessAddress) -> Self {
        let name = match &address {
            ProcessAddress::Socket(path) => path.file_stem().map(|name| name.to_string_lossy().into_owned()),
            ProcessAddress::Web { .. } => None,
        };
        // A second process of the same number has a number after it.
        let pid = name.unwrap_or_default().split('-').next().unwrap_or_default().to_owned();
        Self { address, pid }
    }

    /// Asks it, or tells it something.
    pub async fn send(&self, method: Method, path: &str, body: Option<String>) -> Result<Value, Failure> {
        send(&self.address, method, path, body).await.map_err(|error| self.failure(error))
    }

    /// What one asks for and may not be there.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        match send(&self.address, Method::GET, path, None).await {
            Ok(found) => Ok(Some(found)),
            Err(AskError::Refused { status: http::StatusCode::NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// True if it passes bytes on, as `wrap` and `proxy` do without rules.
    pub async fn is_transparent(&self) -> Result<bool, Failure> {
        Ok(is_transparent(&self.send(Method::GET, STATUS, None).await?))
    }

    /// Why it did not do what it was asked for.
    pub fn failure(&self, error: AskError) -> Failure {
        match error {
            AskError::Refused { why, .. } => Failure::Refused(why),
            other => Failure::Process { address: self.address.clone(), error: other },
        }
    }
}

/// The one that is meant, of those that can change what passes: `wrap` and `proxy` only pass it on, and are meant where no
/// other is.
pub(super) async fn governing(global: &Global, which: &Which) -> Result<Process, Failure> {
    let mut all = all(global, which)?;
    if all.len() > 1 {
        let mut governing = Vec::new();
        for process in &all {
            if !process.is_transparent().await? {
                governing.push(process.clone());
            }
        }
        if !governing.is_empty() {
            all = governing;
        }
    }
    match all.len() {
        1 => Ok(all.remove(0)),
        _ => Err(several(&all)),
    }
}

/// All processes that are meant, of which there is at least one.
pub(super) fn all(global: &Global, which: &Which) -> Result<Vec<Process>, Failure> {
    let meant = any(global, which)?;
    if meant.is_empty() { Err(Failure::NothingRuns(super::data_dir(global)?)) } else { Ok(meant) }
}

/// All processes that are meant. One that is named by its number is there.
pub(super) fn any(global: &Global, which: &Which) -> Result<Vec<Process>, Failure> {
    let (_, sockets) = super::running(global)?;
    let all = sockets.into_iter().map(Process::of);
    let pid = which.pid.map(|pid| pid.to_string());
    let meant: Vec<Process> = all.filter(|one| pid.as_ref().is_none_or(|pid| one.pid == *pid)).collect();
    match pid.filter(|_| meant.is_empty()) {
        Some(pid) => Err(Failure::Usage(format!("no signalbox with pid {pid} runs here; see `signalbox status`"))),
        None => Ok(meant),
    }
}

/// The one that is meant.
pub(super) fn one(global: &Global, which: &Which) -> Result<Process, Failure> {
    let mut all = all(global, which)?;
    match all.len() {
        1 => Ok(all.remove(0)),
        _ => Err(several(&all)),
    }
}

pub(super) fn several(all: &[Process]) -> Failure {
    let pids: Vec<&str> = all.iter().map(|one| one.pid.as_str()).collect();
    Failure::Usage(format!("several processes match; choose one with --pid: {}", pids.join(", ")))
}

/// What a process is asked to do.
pub(super) struct Act {
    pub method: Method,
    pub path: String,
    pub body: Option<String>,
}

/// The one that has something at this path, as [`having`] finds it. Where none has, the first one that can change
/// what passes is asked to do this all the same: its audit log then has the attempt.
pub(super) async fn having_for(
    global: &Global,
    which: &Which,
    path: &str,
    act: Act,
) -> Result<(Process, Value), Failure> {
    let processes = all(global, which)?;
    let found = having_all(&processes, path).await?;
    if !found.is_empty() {
        return only(found);
    }
    for process in processes {
        if !process.is_transparent().await? {
            process.send(act.method, &act.path, act.body).await?;
            return Err(Failure::Refused("it came only while this command looked for it; look again".to_owned()));
        }
    }
    having(global, which, path).await
}

/// Those that have something at this path.
async fn having_all(processes: &[Process], path: &str) -> Result<Vec<(Process, Value)>, Failure> {
    let mut found = Vec::new();
    for process in processes {
        if let Some(there) = process.find(path).await? {
            found.push((process.clone(), there));
        }
    }
    Ok(found)
}

fn only(mut found: Vec<(Process, Value)>) -> Result<(Process, Value), Failure> {
    match found.len() {
        1 => Ok(found.remove(0)),
        _ => Err(several(&found.into_iter().map(|(process, _)| process).collect::<Vec<_>>())),
    }
}

/// The one that has something at this path, where a number may mean something in each of them.
pub(super) async fn having(global: &Global, which: &Which, path: &str) -> Result<(Process, Value), Failure> {
    let processes = all(global, which)?;
    let found = having_all(&processes, path).await?;
    match found.len() {
        0 => match processes.first() {
            // It says best itself what is not there.
            Some(process) => Ok((process.clone(), process.send(Method::GET, path, None).await?)),
            None => Err(Failure::Usage("nothing runs".to_owned())),
        },
        _ => only(found),
    }
}

/// True if this is the state of a process that passes bytes on.
pub(super) fn is_transparent(status: &Value) -> bool {
    status["target"].is_string()
}

/// The name of whoever is at the terminal, for the record.
pub(super) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.is_empty())
}
