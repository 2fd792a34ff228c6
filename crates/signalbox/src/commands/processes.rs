//! Running processes of the data folder: selects the ones a command addresses, and sends them requests.

use crate::cli::{Global, Which};
use crate::failure::Failure;
use http::Method;
use serde_json::Value;
use signalbox_control::api::routes::STATUS;
use signalbox_control::control_socket::{AskError, ProcessAddress, send};

/// A running `signalbox` process and its control address.
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
        // A process that reuses a pid has a suffix after it.
        let pid = name.unwrap_or_default().split('-').next().unwrap_or_default().to_owned();
        Self { address, pid }
    }

    /// Sends a request to the process and returns the JSON of its response.
    pub async fn send(&self, method: Method, path: &str, body: Option<String>) -> Result<Value, Failure> {
        send(&self.address, method, path, body).await.map_err(|error| self.failure(error))
    }

    /// Requests a path that may not exist. Returns `None` for status 404.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        match send(&self.address, Method::GET, path, None).await {
            Ok(found) => Ok(Some(found)),
            Err(AskError::Refused { status: http::StatusCode::NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Returns `true` if the process is a transparent proxy: `wrap` or `proxy` without rules.
    pub async fn is_transparent(&self) -> Result<bool, Failure> {
        Ok(is_transparent(&self.send(Method::GET, STATUS, None).await?))
    }

    /// Converts a failed request into the failure of the command.
    pub fn failure(&self, error: AskError) -> Failure {
        match error {
            AskError::Refused { why, .. } => Failure::Refused(why),
            other => Failure::Process { address: self.address.clone(), error: other },
        }
    }
}

/// Selects the one process that can change messages. `wrap` and `proxy` only forward them, and are selected only if no
/// other process runs.
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

/// Selects all processes that match. Fails if there is none.
pub(super) fn all(global: &Global, which: &Which) -> Result<Vec<Process>, Failure> {
    let meant = any(global, which)?;
    if meant.is_empty() { Err(Failure::NothingRuns(super::data_dir(global)?)) } else { Ok(meant) }
}

/// Selects all processes that match, possibly none. Fails if `--pid` names one that does not run.
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

/// Selects the one process that matches.
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

/// Request to a process.
pub(super) struct Act {
    pub method: Method,
    pub path: String,
    pub body: Option<String>,
}

/// Finds the one process that has a resource at `path`, as [`having`] does. If none has, sends `act` to the first
/// process that is not transparent: its audit log then has the attempt.
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

/// Returns the processes that have a resource at `path`, with the resource.
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

/// Finds the one process that has a resource at `path`. Numbers are per process, so several may have it.
pub(super) async fn having(global: &Global, which: &Which, path: &str) -> Result<(Process, Value), Failure> {
    let processes = all(global, which)?;
    let found = having_all(&processes, path).await?;
    match found.len() {
        0 => match processes.first() {
            // The process's own error names what is missing.
            Some(process) => Ok((process.clone(), process.send(Method::GET, path, None).await?)),
            None => Err(Failure::Usage("nothing runs".to_owned())),
        },
        _ => only(found),
    }
}

/// Returns `true` if this is the status of a transparent proxy.
pub(super) fn is_transparent(status: &Value) -> bool {
    status["target"].is_string()
}

/// Returns the name of the local user, for the audit log.
pub(super) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.is_empty())
}
