//! Starts a child with its arguments and environment, and explains a failed start.

use super::ChildSpec;
use signalbox_engine::{Fault, FaultKind};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Variables that every child inherits from our environment, if set. All others, keys among them, are withheld.
const PASSED: [&str; 9] = ["PATH", "HOME", "USER", "LANG", "NODE_PATH", "NVM_DIR", "NVM_BIN", "TMPDIR", "TERM"];

/// Reasons why a child could not be started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpawnError {
    /// The working directory does not exist.
    #[error("its `cwd` {} is not a folder; create it or correct `cwd`", .0.display())]
    Cwd(PathBuf),
    /// A whole command line was given as `command`.
    #[error(
        "there is no program called `{0}`; no shell is used, so put only the program into `command` and the rest into `args`"
    )]
    CommandLine(String),
    /// The program was not found.
    #[error("program `{program}` was not found on PATH ({path}); install it, or give its full path as `command`")]
    NotOnPath {
        /// Name of the program.
        program: String,
        /// Value of the `PATH` that was searched.
        path: String,
    },
    /// There is no file at the given path.
    #[error("program `{0}` does not exist; correct `command`")]
    Missing(String),
    /// The program is a script whose interpreter does not exist.
    #[error("program `{0}` exists, but the interpreter named in its first line does not; install that")]
    Interpreter(String),
    /// The program is not executable for this user.
    #[error("program `{0}` may not be run by this user; make it executable (chmod +x), or correct `command`")]
    Permission(String),
    /// The file is not a program.
    #[error("`{0}` is not a program for this machine; a script needs a first line such as #!/bin/sh")]
    Format(String),
    /// The system refused for another reason.
    #[error("the system could not start `{program}`: {why}")]
    Other {
        /// Name of the program.
        program: String,
        /// Error of the system.
        why: String,
    },
}

impl SpawnError {
    /// Returns the fault for calls that wait for this backend.
    pub(super) fn fault(&self, backend: &str) -> Fault {
        let text = format!("backend `{backend}` cannot be started: {self}");
        Fault::new(FaultKind::BackendDown, text).with_str("backend", backend)
    }

    fn from_io(error: &io::Error, spec: &ChildSpec, path: Option<&OsString>) -> Self {
        let program = spec.program.clone();
        let is_path = program.contains('/');
        match error.kind() {
            io::ErrorKind::NotFound if exists(spec) => Self::Interpreter(program),
            io::ErrorKind::NotFound if program.contains(char::is_whitespace) => Self::CommandLine(program),
            io::ErrorKind::NotFound if is_path => Self::Missing(program),
            io::ErrorKind::NotFound => Self::NotOnPath {
                program,
                path: path.map_or_else(|| "which is not set".to_owned(), |path| path.to_string_lossy().into_owned()),
            },
            io::ErrorKind::PermissionDenied => Self::Permission(program),
            _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => Self::Format(program),
            _ => Self::Other { program, why: error.to_string() },
        }
    }
}

/// Starts the process as the leader of a new group, with three pipes.
pub(super) fn spawn(spec: &ChildSpec) -> Result<Child, SpawnError> {
    if let Some(cwd) = &spec.cwd
        && !cwd.is_dir()
    {
        return Err(SpawnError::Cwd(cwd.clone()));
    }
    let env = environment(spec, |name| std::env::var_os(name));
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(&env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    command.spawn().map_err(|error| SpawnError::from_io(&error, spec, env.get(&OsString::from("PATH"))))
}

/// Builds the child's environment. Configured values override inherited ones.
fn environment(spec: &ChildSpec, own: impl Fn(&str) -> Option<OsString>) -> BTreeMap<OsString, OsString> {
    let mut env = BTreeMap::new();
    for name in PASSED {
        env.extend(own(name).map(|value| (name.into(), value)));
    }
    for name in &spec.env_pass {
        match own(name) {
            Some(value) => {
                env.insert(name.into(), value);
            }
            None => {
                tracing::warn!(backend = %spec.name, %name, "a variable of `env_pass` is not set")
            }
        }
    }
    env.extend(spec.env.iter().map(|(name, value)| (name.into(), value.into())));
    env
}

/// Returns `true` if a program given as a path exists. A relative path is resolved from the child's working directory.
fn exists(spec: &ChildSpec) -> bool {
    let program = Path::new(&spec.program);
    let from = spec.cwd.as_deref().unwrap_or(Path::new(""));
    spec.program.contains('/') && from.join(program).exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Proves NO-5.
    #[test]
    fn only_listed_passed_and_configured_variables_get_through() {
        let mut spec = ChildSpec::new("b", "x");
        spec.env_pass = vec!["TOKEN".to_owned(), "UNSET".to_owned()];
        spec.env = vec![("LANG".to_owned(), "C".to_owned()), ("MINE".to_owned(), "1".to_owned())];
        let own = |name: &str| (name != "UNSET" && name != "NVM_BIN").then(|| OsString::from("ours"));
        let env = environment(&spec, own);
        let shown: Vec<String> =
            env.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        assert_eq!(
            shown.join(" "),
            "HOME=ours LANG=C MINE=1 NODE_PATH=ours NVM_DIR=ours PATH=ours TERM=ours TMPDIR=ours TOKEN=ours USER=ours"
        );
    }

    async fn check(change: impl FnOnce(&mut ChildSpec)) -> SpawnError {
        let mut spec = ChildSpec::new("b", "no-such-program-here");
        change(&mut spec);
        spawn(&spec).unwrap_err()
    }

    #[tokio::test]
    async fn a_failed_start_says_what_to_do() {
        let fault = check(|_| {}).await.fault("b");
        assert_eq!(fault.kind, FaultKind::BackendDown);
        assert!(
            fault
                .message
                .starts_with("backend `b` cannot be started: program `no-such-program-here` was not found on PATH (/"),
            "{fault}"
        );
        let path = |spec: &mut ChildSpec| spec.env = vec![("PATH".to_owned(), "/nowhere".to_owned())];
        assert!(matches!(check(path).await, SpawnError::NotOnPath { path, .. } if path == "/nowhere"));
        let line = check(|spec| "npx -y thing".clone_into(&mut spec.program)).await;
        assert_eq!(line, SpawnError::CommandLine("npx -y thing".to_owned()));
        let cwd = check(|spec| spec.cwd = Some("/nowhere/at/all".into())).await;
        assert_eq!(cwd, SpawnError::Cwd("/nowhere/at/all".into()));
        let missing = check(|spec| "/nowhere/program".clone_into(&mut spec.program)).await;
        assert_eq!(missing, SpawnError::Missing("/nowhere/program".to_owned()));
        let nul = check(|spec| spec.args = vec!["a\0b".to_owned()]).await;
        assert!(matches!(nul, SpawnError::Other { .. }));
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_run_is_told_from_one_that_is_missing() {
        let folder = std::env::temp_dir().join(format!("signalbox-spawn-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, mode: u32, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let plain = file("plain", 0o644, "#!/bin/sh\n");
        let script = file("script", 0o755, "#!/nowhere/interpreter\n");
        let data = file("data", 0o755, "\x01\x02\x03");
        assert_eq!(check(|spec| spec.program.clone_from(&plain)).await, SpawnError::Permission(plain));
        assert_eq!(check(|spec| spec.program.clone_from(&script)).await, SpawnError::Interpreter(script));
        assert_eq!(check(|spec| spec.program.clone_from(&data)).await, SpawnError::Format(data));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
