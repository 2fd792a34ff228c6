//! Configuration file: whether it loads, and which users can change it or read its secrets.

use super::finding::Finding;
use signalbox_config::unchecked::secrets;
use signalbox_config::{CheckedConfig, Config, ConfigError, ConfigLocation, Note, Problem, Warning};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Name of this check.
const CHECK: &str = "config";
/// Mode bits that let other users write.
const OTHERS_WRITE: u32 = 0o022;
/// Mode bits that let other users read.
const OTHERS_READ: u32 = 0o044;

/// Returns the finding for a configuration that cannot be used.
pub(super) fn unusable(error: &ConfigError) -> Finding {
    let advice = match &*error.problem {
        Problem::FileMissing => "check the path after `-c` (or SIGNALBOX_CONFIG), or leave it out to use the defaults",
        Problem::Unreadable(_) => "let this user read the file: `chmod u+r FILE`, or choose another with `-c FILE`",
        Problem::Toml(_) | Problem::Json(_) => "correct the syntax at that place; strings need quotes",
        Problem::UnknownKey { .. } => "correct or remove the key; `signalbox config reference` lists every key",
        Problem::Unset { .. } => "set the variable where Signalbox is started, or give a default as the message shows",
        Problem::NotBuilt { .. } => "remove the key until a version has the feature",
        _ => "correct the file at that place; `signalbox config reference` explains every key",
    };
    Finding::problem(CHECK, error.problem.to_string(), advice).at(place(&error.place.to_string()))
}

/// Returns a summary of the configuration and its warnings.
pub(super) fn loaded(loaded: &CheckedConfig) -> Vec<Finding> {
    let mut findings = vec![summary(&loaded.config)];
    findings.extend(loaded.warnings.iter().map(tolerated));
    findings
}

fn summary(config: &Config) -> Finding {
    let Some(file) = &config.source else {
        return Finding::note(CHECK, "no configuration file was found, so the defaults and the demo tools are used");
    };
    let enabled = config.backends.iter().filter(|one| !one.disabled).count();
    let disabled = config.backends.len() - enabled;
    Finding::ok(CHECK, format!("the file can be used; backends: {enabled}, disabled: {disabled}"))
        .at(file.display().to_string())
}

fn tolerated(warning: &Warning) -> Finding {
    let advice = match &warning.note {
        Note::CommandLine => "put only the program into `command` and the rest into `args`",
        Note::PlainSecret(_) => "move the secret into the environment",
        Note::UnknownVariable { .. } => "unset it, or leave it: it has no effect",
        Note::Renamed(_) => "give it a name of letters, digits, `_`, `.` and `-`",
        _ => "remove it from the file, or leave it: it has no effect here",
    };
    Finding::warning(CHECK, warning.note.to_string(), advice).at(place(&warning.place.to_string()))
}

/// Returns a place without the colon that precedes the message.
fn place(text: &str) -> String {
    text.trim_end().trim_end_matches(':').to_owned()
}

/// Checks which users can change the file, and which can read secrets in it.
pub(super) fn file(path: &Path, text: &str) -> Vec<Finding> {
    let secrets = secrets(text);
    let mode = path.metadata().map_or(0, |metadata| metadata.mode());
    let shown = path.display().to_string();
    let mut findings = Vec::new();
    if mode & OTHERS_WRITE != 0 {
        let found = format!(
            "other users may change the file (mode {:03o}), and with it the programs that are started",
            mode & 0o777
        );
        findings.push(Finding::problem(CHECK, found, format!("remove their access: `chmod go-w {shown}`")).at(&shown));
    }
    for secret in &secrets {
        let found = format!("`{}` looks like a secret in plain text", secret.key);
        let advice = format!("put it into the environment and write `${{{}}}`", secret.variable);
        findings.push(Finding::warning(CHECK, found, advice).at(&shown));
    }
    if !secrets.is_empty() && mode & OTHERS_READ != 0 {
        let found = format!("other users may read the secrets in the file (mode {:03o})", mode & 0o777);
        findings.push(Finding::warning(CHECK, found, format!("remove their access: `chmod 600 {shown}`")).at(&shown));
    }
    findings
}

/// Returns the path and text of the configuration file, if there is one and it can be read.
pub(super) fn text(found: &ConfigLocation) -> Option<(&Path, String)> {
    let ConfigLocation::File(path) = found else { return None };
    Some((path, signalbox_config::locate::read(path).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_that_others_may_change_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signalbox.toml");
        let text = "[backends.a.env]\nAPI_KEY = 'sk-1'\n";
        std::fs::write(&path, text).unwrap();
        let check = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            file(&path, text)
        };
        assert_eq!(check(0o600).len(), 1);
        assert!(check(0o644)[1].advice.as_deref().unwrap().contains("chmod 600"));
        let open = check(0o666);
        assert_eq!(open[0].severity, Severity::Problem);
        assert!(open[0].advice.as_deref().unwrap().contains("chmod go-w"));
        assert!(open.iter().all(|finding| !finding.found.contains("sk-1")));
    }
}
