//! The operator's labels of tools: categories, trust level, required permissions, version.
//!
//! A backend's own claims about its tools are not trusted: labels come from the configuration.

use crate::standing::TrustLevel;
use std::time::Duration;

/// Label of one tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolLabel {
    /// Categories of the tool, each once, in configured order.
    pub categories: Vec<Box<str>>,
    /// Trust level of the tool.
    pub trust: TrustLevel,
    /// Permissions that a caller needs, such as `read:filesystem`.
    pub permissions: Vec<Box<str>>,
    /// Version of the tool, if one is configured.
    pub version: Option<Box<str>>,
}

impl Default for ToolLabel {
    /// Returns the label of a tool without configuration.
    fn default() -> Self {
        Self { categories: Vec::new(), trust: TrustLevel::Community, permissions: Vec::new(), version: None }
    }
}

/// Source of the labels of tools.
pub trait LabelSource: Send + Sync {
    /// Returns the label of a tool by the backend's own name for it.
    fn label(&self, backend: &str, name: &str) -> ToolLabel;
}

/// Source of the time-outs of tools.
pub trait TimeoutSource: Send + Sync {
    /// Returns the time limit for calls of this tool, by the backend's own name for it; `None` for that of the backend.
    /// Called for every call, so it must be cheap.
    fn timeout(&self, backend: &str, name: &str) -> Option<Duration>;
}

/// Source without labels: no tool is configured.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoLabels;

impl LabelSource for NoLabels {
    fn label(&self, _backend: &str, _name: &str) -> ToolLabel {
        ToolLabel::default()
    }
}
