//! Definitions of tools as their backends sent them, for their approval.

use crate::tool_list::missing;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use signalbox_runtime::Gateway;
use std::collections::{BTreeMap, HashSet};

/// Answer of the endpoint for definitions: those of every backend that the gateway knows.
#[derive(Debug, Serialize, Deserialize)]
pub struct DefinitionList {
    /// Definitions by the name of the backend.
    pub backends: BTreeMap<String, BackendDefinitions>,
    /// Backends that are not up, with the reason.
    pub missing: Vec<String>,
    /// True unless there are backends and none of them is up.
    pub ready: bool,
}

/// Definitions of one backend, in any list that it gives to any kind of client.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct BackendDefinitions {
    /// Instructions for the model. Kinds of clients may be given different ones.
    pub instructions: Vec<String>,
    /// Tools, byte for byte. A tool occurs several times if kinds of clients are given different definitions.
    pub tools: Vec<Box<RawValue>>,
    /// The backend's own names of the tools that are in quarantine.
    pub quarantined: Vec<String>,
}

impl DefinitionList {
    /// Returns the definitions in the lists that the gateway knows, and what the guard has quarantined of them.
    #[must_use]
    pub fn of(gateway: &Gateway, quarantined: &[(&str, &str, &str)]) -> Self {
        let catalog = gateway.catalog.snapshot();
        let mut backends: BTreeMap<String, BackendDefinitions> = BTreeMap::new();
        for entry in catalog.backends().iter() {
            let listed = backends.entry(entry.name.to_string()).or_default();
            let mut seen = HashSet::new();
            for view in entry.views.values().map(|view| view.sent()) {
                let tools = view.tools.iter().filter(|tool| seen.insert(tool.raw.clone()));
                listed.tools.extend(tools.filter_map(|tool| serde_json::from_slice(&tool.raw).ok()));
                let text = view.profile.instructions.clone().filter(|text| !listed.instructions.contains(text));
                listed.instructions.extend(text);
            }
            let own = quarantined.iter().filter(|(backend, ..)| *backend == &*entry.name);
            listed.quarantined = own.map(|(_, tool, _)| (*tool).to_owned()).collect();
        }
        let ready = gateway.backends().is_empty() || gateway.is_ready();
        Self { backends, missing: missing(gateway), ready }
    }
}
