//! `signalbox doctor`: checks everything that the gateway needs to work, and gives advice where something is wrong.
//!
//! Each file of this folder checks one thing and returns [`Finding`]s. This one selects the checks and their order.

mod address;
mod auditing;
mod backends;
pub mod certificate;
mod clock;
mod configuration;
mod data_folder;
pub mod finding;
mod port;
mod program;
mod recording;
pub mod report;
mod running;

use address::{Address, AddressReport};
use backends::BackendProbe;
use finding::{Finding, Severity};
use program::LaunchSpec;
use serde_json::Value;
use signalbox_assembly::assemble::uses_demo;
use signalbox_assembly::name_check;
use signalbox_config::{BackendConfig, BackendTarget, CheckedConfig, Config, ConfigError, ConfigLocation, Env};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

/// Input of the checks.
pub struct DoctorInput<'a> {
    /// Location of the configuration.
    pub found: &'a ConfigLocation,
    /// Loaded configuration, or the error.
    pub loaded: Result<CheckedConfig, ConfigError>,
    /// Environment of this process.
    pub env: &'a Env<'a>,
}

/// Runs all checks and returns the findings in order.
pub async fn examine(input: DoctorInput<'_>) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("versions", format!("signalbox: {}", env!("CARGO_PKG_VERSION")))];
    let text = configuration::text(input.found);
    let now = SystemTime::now();
    match &input.loaded {
        Err(error) => findings.push(configuration::unusable(error)),
        Ok(loaded) => findings.extend(configuration::loaded(loaded)),
    }
    if let Some((path, text)) = &text {
        findings.extend(configuration::file(path, text));
        findings.extend(certificates(path, text, now));
    }
    match input.loaded {
        Ok(loaded) => findings.extend(machine_and_backends(&loaded.config, input.env, now).await),
        Err(_) => {
            findings.push(Finding::note("backends", "nothing else can be checked until the configuration is usable"));
        }
    }
    findings
}

/// Returns true if a finding is a problem.
#[must_use]
pub fn has_problems(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Problem)
}

/// Checks the TLS files of the listener. Relative paths start at the folder of the configuration file.
fn certificates(config: &Path, text: &str, now: SystemTime) -> Vec<Finding> {
    let files = signalbox_config::unchecked::tls_files(text);
    let folder = config.parent().unwrap_or(Path::new(""));
    let place = |file: &String| folder.join(file);
    let mut findings = Vec::new();
    if let Some(file) = files.certificate.as_ref().map(place) {
        findings.extend(certificate::certificate(&file, now));
        if let Some(key) = files.key.as_ref().map(place) {
            findings.extend(certificate::key(&key, &file));
        }
    }
    if let Some(file) = files.authorities.as_ref().map(place) {
        findings.extend(certificate::authorities(&file, now));
    }
    findings
}

async fn machine_and_backends(config: &Config, env: &Env<'_>, now: SystemTime) -> Vec<Finding> {
    let mut findings = data_folder::check(&config.data_dir);
    let (running, told) = running::check(&config.data_dir).await;
    findings.push(crate::open_files::check_limit(config.gateway.max_connections, &running));
    findings.extend(told);
    findings.extend(recording::check(config).await);
    findings.push(port::check(&config.listen, &running));
    let advice = "call it by that name, or leave it out with `tools.exclude`";
    let names = name_check::collisions(&name_check::kept_catalog(config));
    findings.extend(names.into_iter().map(|found| Finding::warning("names", found, advice)));
    let address = SocketAddr::new(config.listen.host, config.listen.port);
    let serving = running.iter().find(|status| port::serves(status, address));
    let mut dates = Vec::new();
    findings.extend(check_backends(config, env, serving, &mut dates).await);
    let program = std::env::current_exe().ok();
    let written: Vec<&Path> = program.as_deref().into_iter().chain(config.source.as_deref()).collect();
    findings.push(clock::check(now, &dates, &written));
    findings
}

/// Returns how a local backend is started.
fn start<'a>(backend: &'a BackendConfig, env: &Env<'_>) -> Option<LaunchSpec<'a>> {
    let BackendTarget::Command { program, args, env: set, cwd, .. } = &backend.target else { return None };
    let path = set.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.expose().to_owned());
    let path = path.or_else(|| env("PATH")).map(OsString::from);
    Some(LaunchSpec { backend: &backend.name, program, args, cwd: cwd.as_deref(), path })
}

/// Returns the problems with the programs of local backends that are certain without starting them.
#[must_use]
pub fn bad_programs(config: &Config, env: &Env<'_>) -> Vec<Finding> {
    let enabled = config.backends.iter().filter(|backend| !backend.disabled);
    enabled.filter_map(|backend| start(backend, env)?.fault()).collect()
}

/// Checks each backend from outside, then starts those without a fault, unless a gateway runs them already.
async fn check_backends(
    config: &Config,
    env: &Env<'_>,
    serving: Option<&Value>,
    dates: &mut Vec<(String, SystemTime)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<&str, AddressReport> = BTreeMap::new();
    let mut versions: BTreeMap<&'static str, Option<OsString>> = BTreeMap::new();
    let mut trial = Config { backends: Vec::new(), ..config.clone() };
    for backend in &config.backends {
        if backend.disabled {
            findings.push(Finding::note(&backends::check(&backend.name), "it is disabled"));
            continue;
        }
        let fault = match &backend.target {
            BackendTarget::Command { .. } => start(backend, env).and_then(|start| {
                versions.extend(start.runtime().map(|program| (program, start.path.clone())));
                start.fault()
            }),
            BackendTarget::Url { url, headers, tls, .. } => {
                findings.extend(certificate::of_backend(tls, SystemTime::now()));
                let address = Address { backend: &backend.name, url, headers };
                let report = address.probe().await;
                dates.extend(report.date.map(|date| (backend.name.clone(), date)));
                seen.insert(&backend.name, report);
                None
            }
            BackendTarget::Tape | BackendTarget::Builtin(_) => None,
        };
        match fault {
            Some(fault) => findings.push(fault),
            None => trial.backends.push(backend.clone()),
        }
    }
    findings.extend(program::versions(&versions).await);
    if let Some(status) = serving {
        findings.extend(from_running(status));
    } else if !trial.backends.is_empty() || uses_demo(config) {
        findings.extend(started(&trial, seen).await);
    }
    findings
}

async fn started(trial: &Config, mut seen: BTreeMap<&str, AddressReport>) -> Vec<Finding> {
    let outcomes = match backends::probe_all(trial).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            let advice = "correct the configuration as the message says";
            return vec![Finding::problem("backends", error.to_string(), advice)];
        }
    };
    let mut findings = Vec::new();
    for outcome in &outcomes {
        let name = outcome.status.name.as_str();
        let backend = trial.backends.iter().find(|backend| backend.name == name);
        if outcome.is_up() {
            findings.push(backends::served(outcome));
        } else if outcome.status.state == "waiting" {
            findings.push(backends::waiting(&backends::check(name)));
        } else {
            let fault = seen.remove(name).and_then(|seen| seen.fault);
            findings.push(match fault {
                Some(fault) => fault,
                None => other_path(outcome, backend).await,
            });
        }
        findings.extend(backends::strays(&outcome.status));
    }
    findings
}

/// Returns the finding for a backend that does not serve. For a remote backend, also looks for MCP under another path.
async fn other_path(outcome: &BackendProbe, backend: Option<&BackendConfig>) -> Finding {
    let finding = backends::failed(outcome, backend);
    if let Some(BackendConfig { name, target: BackendTarget::Url { url, headers, .. }, .. }) = backend {
        let address = Address { backend: name, url, headers };
        let finding = finding.at(format!("backends.{name}.url"));
        return match address.likely().await {
            Some(path) => Finding { advice: Some(format!("did you mean `{}`?", address.with_path(path))), ..finding },
            None => finding,
        };
    }
    finding
}

/// Reports the backends of a running gateway from its status, without starting anything twice.
fn from_running(status: &Value) -> Vec<Finding> {
    let backends = status["backends"].as_array().into_iter().flatten();
    let one = |backend: &Value| {
        let text = |key: &str| backend[key].as_str().unwrap_or("-");
        let check = backends::check(text("name"));
        if backend["state"] == "up" {
            let found = format!("{} is up in the running gateway; revision {}", text("server"), text("revision"));
            return Finding::ok(&check, format!("{found}, tools: {}", backend["lists"]["tools"]));
        }
        if backend["state"] == "asleep" {
            let found =
                format!("{} is asleep in the running gateway: stopped, and started at its next use", text("server"));
            return Finding::ok(&check, format!("{found}, tools: {}", backend["lists"]["tools"]));
        }
        if backend["state"] == "waiting" {
            return backends::waiting(&check);
        }
        let found = format!("it is {} in the running gateway: {}", text("state"), text("last_error"));
        let words: Vec<&str> =
            backend["last_words"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let advice = backends::advice(text("name"), text("transport"), text("last_error"), &words);
        Finding::problem(&check, found, format!("{advice}; then run `signalbox reload`"))
    };
    backends.map(one).collect()
}
