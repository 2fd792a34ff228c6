//! Program of a local backend, checked before it is started: existence, permission, script.

use super::finding::Finding;
use rustix::fs::{Access, access};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

/// Timeout for a program to report its version.
const VERSION_WAIT: Duration = Duration::from_secs(10);
/// Oldest version of Node.js that current servers support.
const OLDEST_NODE: u32 = 18;

/// Start parameters of a local backend: program, arguments, working folder and PATH.
pub(super) struct LaunchSpec<'a> {
    pub backend: &'a str,
    pub program: &'a str,
    pub args: &'a [String],
    pub cwd: Option<&'a Path>,
    pub path: Option<OsString>,
}

impl LaunchSpec<'_> {
    fn check(&self) -> String {
        format!("backend {}", self.backend)
    }

    fn key(&self, key: &str) -> String {
        format!("backends.{}.{key}", self.backend)
    }

    /// Returns a certain fault, or `None` if the program may start.
    pub(super) fn fault(&self) -> Option<Finding> {
        self.bad_cwd().or_else(|| self.bad_program()).or_else(|| self.bad_script())
    }

    fn bad_cwd(&self) -> Option<Finding> {
        let cwd = self.cwd.filter(|cwd| !cwd.is_dir())?;
        let found = format!("its working folder {} does not exist", cwd.display());
        Some(Finding::problem(&self.check(), found, "create the folder, or correct `cwd`").at(self.key("cwd")))
    }

    fn bad_program(&self) -> Option<Finding> {
        let at = self.key("command");
        let program = self.program;
        let Some(found) = self.find() else {
            if program.contains(char::is_whitespace) {
                let found = format!("there is no program called `{program}`: it looks like a whole command line");
                let advice = "put only the program into `command` and the rest into `args`; no shell is used";
                return Some(Finding::problem(&self.check(), found, advice).at(at));
            }
            if program.contains('/') {
                let found = format!("program `{program}` does not exist");
                return Some(
                    Finding::problem(&self.check(), found, "correct the path in `command`, or install it there").at(at),
                );
            }
            let path = self.path.as_deref().map_or_else(|| "which is not set".into(), std::ffi::OsStr::to_string_lossy);
            let found = format!("program `{program}` was not found on PATH ({path})");
            let advice = format!("{}; or give its full path as `command`", install(program));
            return Some(Finding::problem(&self.check(), found, advice).at(at));
        };
        if found.is_dir() || access(&found, Access::EXEC_OK).is_err() {
            let text = format!("{} may not be run by this user", found.display());
            let advice = format!("make it executable (`chmod +x {}`), or correct `command`", found.display());
            return Some(Finding::problem(&self.check(), text, advice).at(at));
        }
        None
    }

    /// Returns the path of the program.
    fn find(&self) -> Option<PathBuf> {
        let from = self.cwd.unwrap_or(Path::new(""));
        if self.program.contains('/') {
            return Some(from.join(self.program)).filter(|path| path.exists());
        }
        let folders = std::env::split_paths(self.path.as_deref()?);
        let all: Vec<PathBuf> = folders.map(|folder| folder.join(self.program)).filter(|path| path.is_file()).collect();
        // Prefer an executable file, as the system does.
        all.iter().find(|path| access(*path, Access::EXEC_OK).is_ok()).or(all.first()).cloned()
    }

    /// Returns a fault if an interpreter is given a script that does not exist.
    fn bad_script(&self) -> Option<Finding> {
        let name = Path::new(self.program).file_name()?.to_str()?;
        let interprets = ["node", "python", "python3", "bun", "deno", "sh", "bash", "ruby", "php", "tsx", "ts-node"];
        if !interprets.contains(&name) || self.args.iter().any(|arg| arg == "-m" || arg == "-c" || arg == "-e") {
            return None;
        }
        let script = self.args.iter().find(|arg| !arg.starts_with('-') && *arg != "run")?;
        let ends = [".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".rb", ".php"];
        let is_path = script.contains('/') || ends.iter().any(|end| script.ends_with(end));
        let file = self.cwd.unwrap_or(Path::new("")).join(script);
        if !is_path || script.contains("://") || file.exists() {
            return None;
        }
        let found = format!("`{name}` should run {}, which does not exist", file.display());
        let advice = match self.cwd {
            Some(_) => "correct the path in `args`; a relative one is taken from `cwd`",
            None => {
                "correct the path in `args`; a relative one is taken from the folder Signalbox is started in, so give the full path or set `cwd`"
            }
        };
        Some(Finding::problem(&self.check(), found, advice).at(self.key("args")))
    }

    /// Returns the program whose version matters, if the backend's program depends on one.
    pub(super) fn runtime(&self) -> Option<&'static str> {
        match Path::new(self.program).file_name()?.to_str()? {
            "node" | "npx" | "npm" | "tsx" | "ts-node" => Some("node"),
            "python" => Some("python"),
            "python3" | "pip" | "pipx" => Some("python3"),
            "uv" | "uvx" => Some("uv"),
            "docker" => Some("docker"),
            "bun" | "bunx" => Some("bun"),
            "deno" => Some("deno"),
            _ => None,
        }
    }
}

/// Returns how to install a missing program.
fn install(program: &str) -> String {
    match program {
        "node" | "npx" | "npm" => {
            "install Node.js 18 or later, which brings `node`, `npm` and `npx` (https://nodejs.org, `apt install nodejs npm` \
             or `brew install node`); if it comes from nvm, start Signalbox from a shell that has loaded it"
        }
        "uv" | "uvx" => "install uv, which brings `uvx` (`pip install uv`, `brew install uv` or https://docs.astral.sh/uv)",
        "python" => "install Python 3 (`apt install python3` or https://python.org); its program is often called `python3`",
        "python3" | "pip" | "pipx" => "install Python 3 (`apt install python3`, `brew install python` or https://python.org)",
        "docker" => "install Docker (https://docs.docker.com/get-docker) and let this user reach it",
        "bun" | "bunx" => "install Bun (https://bun.sh)",
        "deno" => "install Deno (https://deno.com)",
        other => return format!("install `{other}`, or add its folder to PATH where Signalbox is started"),
    }
    .to_owned()
}

/// Reports the versions of the programs that backends depend on.
pub(super) async fn versions(used: &BTreeMap<&'static str, Option<OsString>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (program, path) in used {
        let mut command = Command::new(program);
        command.arg("--version").kill_on_drop(true).stdin(std::process::Stdio::null());
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let told = tokio::time::timeout(VERSION_WAIT, command.output()).await;
        if let Ok(Ok(output)) = told
            && output.status.success()
        {
            let text = String::from_utf8_lossy(&output.stdout);
            findings.extend(text.lines().next().map(|line| version(program, line.trim())));
        }
    }
    findings
}

fn version(program: &str, told: &str) -> Finding {
    let major = told.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    let check = "versions";
    if program == "node" && major.is_some_and(|major| major < OLDEST_NODE) {
        let found = format!("Node.js is {told}; most servers need {OLDEST_NODE} or later");
        return Finding::warning(check, found, "install a current Node.js (https://nodejs.org)");
    }
    Finding::ok(check, format!("{program}: {told}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use std::os::unix::fs::PermissionsExt as _;

    fn check(program: &str, args: &[&str], cwd: Option<&Path>, path: &Path) -> Option<Finding> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        LaunchSpec { backend: "b", program, args: &args, cwd, path: Some(path.into()) }.fault()
    }

    fn advice(finding: Option<Finding>) -> String {
        let finding = finding.unwrap();
        assert_eq!(finding.severity, Severity::Problem);
        finding.advice.unwrap()
    }

    #[test]
    fn a_missing_program_says_what_to_install() {
        let empty = tempfile::tempdir().unwrap();
        for (program, expected) in [
            ("npx", "install Node.js"),
            ("uvx", "install uv"),
            ("python3", "install Python 3"),
            ("docker", "Docker"),
            ("x", "install `x`"),
        ] {
            let advice = advice(check(program, &[], None, empty.path()));
            assert!(advice.contains(expected), "{program}: {advice}");
        }
        assert!(advice(check("npx -y thing", &[], None, empty.path())).contains("`args`"));
        assert!(advice(check("/nowhere/x", &[], None, empty.path())).contains("correct the path"));
        assert!(
            advice(check("sh", &[], Some(Path::new("/nowhere/at/all")), Path::new("/bin")))
                .contains("create the folder")
        );
    }

    #[test]
    fn a_program_must_be_executable_and_its_script_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(advice(check("server", &[], None, folder.path())).contains("chmod +x"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(check("server", &[], None, folder.path()), None);
        assert_eq!(check("./server", &[], Some(folder.path()), Path::new("/nowhere")), None);

        let sh = |args: &[&str]| check("/bin/sh", args, Some(folder.path()), Path::new("/bin"));
        assert!(advice(sh(&["-x", "missing.sh"])).contains("correct the path in `args`"));
        assert_eq!(sh(&["server"]), None);
        assert_eq!(sh(&["-c", "./missing.sh"]), None);
    }

    #[test]
    fn an_old_node_is_a_warning() {
        assert_eq!(version("node", "v16.1.0").severity, Severity::Warning);
        assert_eq!(version("node", "v22.0.0").severity, Severity::Ok);
        assert_eq!(version("python3", "Python 3.12.1").severity, Severity::Ok);
    }
}
