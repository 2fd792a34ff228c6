//! What the operator says of a tool: its categories, how far it is trusted, what it takes to call it, its version.
//!
//! A backend says such things of its tools too, but is not believed: labels come from the configuration.

use crate::standing::TrustLevel;
use std::time::Duration;

/// What one tool is labelled with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolLabel {
    /// What kinds of tool it is, each once, in the order in which they were configured.
    pub categories: Vec<Box<str>>,
    /// How far it is trusted.
    pub trust: TrustLevel,
    /// What a caller needs to be permitted to call it, such as `read:filesystem`.
    pub permissions: Vec<Box<str>>,
    /// Its version, where one is configured.
    pub version: Option<Box<str>>,
}

impl Default for ToolLabel {
    /// The label of a tool about which nothing is configured.
    fn default() -> Self {
        Self { categories: Vec::new(), trust: TrustLevel::Community, permissions: Vec::new(), version: None }
    }
}

/// Who knows the labels of tools.
pub trait LabelSource: Send + Sync {
    /// The label of the tool that `backend` calls `name`.
    fn label(&self, backend: &str, name: &str) -> ToolLabel;
}

/// Who knows how long calls of tools may take.
pub trait TimeoutSource: Send + Sync {
    /// How long a call of the tool that `backend` calls `name` may take; `None` as long as any call of the backend. Asked about every
    /// call, so it must be cheap.
    fn timeout(&self, backend: &str, name: &str) -> Option<Duration>;
}

/// Knows no labels: nothing is configured about any tool.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoLabels;

impl LabelSource for NoLabels {
    fn label(&self, _backend: &str, _name: &str) -> ToolLabel {
        ToolLabel::default()
    }
}
