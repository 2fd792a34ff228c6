//! The state of a process, as it tells it on its control socket and as `signalbox status` shows it.
//!
//! The telling side is this file, [`traffic`] and [`limits`]; the showing side is [`view`], [`columns`] and [`show`].

pub mod columns;
mod limits;
pub mod rates;
pub mod show;
pub mod traffic;
pub mod view;

use crate::assemble::App;
use crate::config::{BackendConfig, Config, TrustLevel};
use crate::control::{self, Route};
use limits::{Bounds, Limit};
use serde::Serialize;
use serde_json::json;
use signalbox_runtime::Gateway;
use signalbox_runtime::status::Status;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use traffic::{Recent, Traffic};

/// What a process is, besides its gateway.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// `serve` or `stdio`.
    pub command: &'static str,
    /// Where clients connect, if they do.
    pub url: Option<String>,
    /// The configuration file, if there is one.
    pub config: Option<PathBuf>,
    /// Where state is kept.
    pub data_dir: PathBuf,
    /// What the configuration says about each backend, by its name.
    pub labels: BTreeMap<String, Labels>,
    #[serde(skip)]
    bounds: Bounds,
    #[serde(skip)]
    loaded: SystemTime,
}

/// How the operator has labelled a backend.
#[derive(Clone, Debug, Serialize)]
pub struct Labels {
    /// What kind of tools it has.
    pub category: Option<String>,
    /// How far its tools are trusted.
    pub trust_level: TrustLevel,
}

impl Process {
    /// A process that runs this command with this configuration.
    #[must_use]
    pub fn new(command: &'static str, url: Option<String>, config: &Config) -> Self {
        let label = |backend: &BackendConfig| {
            let labels = Labels { category: backend.category.clone(), trust_level: backend.trust_level };
            (backend.name.clone(), labels)
        };
        Self {
            command,
            url,
            config: config.source.clone(),
            data_dir: config.data_dir.clone(),
            labels: config.backends.iter().filter(|backend| !backend.disabled).map(label).collect(),
            bounds: Bounds::of(config),
            loaded: SystemTime::now(),
        }
    }

    /// Whether the file still is what was loaded.
    fn config_state(&self) -> &'static str {
        let changed = |file: &Path| Some(file.metadata().ok()?.modified().ok()? > self.loaded);
        match self.config.as_deref().map(changed) {
            None => "defaults",
            Some(None) => "gone since it was loaded",
            Some(Some(true)) => "changed since it was loaded",
            Some(Some(false)) => "loaded",
        }
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    process: &'a Process,
    config_state: &'static str,
    #[serde(flatten)]
    status: Status,
    traffic: Traffic,
    limits: Vec<Limit>,
}

impl<'a> Whole<'a> {
    fn new(process: &'a Process, gateway: &Gateway, recent: &Recent) -> Self {
        let status = gateway.status();
        let limits = process.bounds.used(&status);
        Self { process, config_state: process.config_state(), status, traffic: recent.traffic(), limits }
    }
}

/// The routes of the control socket. Needs a runtime, on which the traffic of the last minute is followed.
#[must_use]
pub fn route(app: &App, process: Process) -> Route {
    let gateway: Arc<Gateway> = Arc::clone(&app.gateway);
    let recent = Recent::follow(&app.metrics);
    Arc::new(move |path| match path {
        control::STATUS => serde_json::to_string(&Whole::new(&process, &gateway, &recent)).ok(),
        control::VERSION => Some(json!({"name": "signalbox", "version": env!("CARGO_PKG_VERSION")}).to_string()),
        _ => None,
    })
}
