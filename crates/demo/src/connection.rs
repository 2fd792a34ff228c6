//! Demo tools of one peer, with rate limit and result formatting.

use super::bucket::Bucket;
use super::catalog;
use super::toolbox::{Outcome, Tool, Toolbox};
use serde_json::{Map, Value};
use signalbox_embedded::{Answer, CallOutcome, Progress, RunningCall, ServerDescription};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Allowed listings per minute, and the burst size.
const LISTINGS_PER_MINUTE: u32 = 120;
const LISTINGS_BURST: u32 = 10;

const META_RISK: &str = "signalbox/risk";
const META_ERROR: &str = "signalbox/error";
const META_SKIPPED: &str = "signalbox/skipped_directories";

const ABOUT: ServerDescription = ServerDescription {
    name: "signalbox-demo",
    title: "Signalbox demo tools",
    version: env!("CARGO_PKG_VERSION"),
    instructions: "These are the demo tools of Signalbox, here because no backend is configured yet. \
                   Paths are relative to the folder that the gateway was started in.",
};

/// Tools of one peer, with their own rate limit.
#[derive(Debug)]
pub(super) struct Connection {
    toolbox: Arc<Toolbox>,
    listings: Bucket,
}

impl Connection {
    /// Creates the tools for a new peer.
    pub(super) fn new(toolbox: Arc<Toolbox>) -> Connection {
        Connection { toolbox, listings: Bucket::new(LISTINGS_PER_MINUTE, LISTINGS_BURST) }
    }

    /// Applies the rate limit. It precedes the check of the arguments, so that invalid calls count too.
    fn admit(&mut self, tool: Tool) -> Result<(), Duration> {
        match tool {
            Tool::DirectoryList => self.listings.take(Instant::now()),
            Tool::Echo | Tool::Countdown => Ok(()),
        }
    }
}

impl signalbox_embedded::Toolbox for Connection {
    fn about(&self) -> ServerDescription {
        ABOUT
    }

    fn tools(&self) -> Vec<Value> {
        catalog::tools()
    }

    fn call(&mut self, tool: &str, arguments: Map<String, Value>, progress: Progress) -> Option<RunningCall> {
        let tool = Tool::named(tool)?;
        let (toolbox, admitted) = (Arc::clone(&self.toolbox), self.admit(tool));
        Some(Box::pin(async move { to_answer(toolbox.call(tool, &arguments, &progress, admitted).await) }))
    }
}

fn to_answer(outcome: Outcome) -> Answer {
    let path = outcome.requested_path.as_deref();
    let mut meta = Map::new();
    if let Some(risk) = outcome.risk {
        meta.insert(META_RISK.into(), risk.word().into());
    }
    match outcome.answer {
        Ok(answer) => {
            if answer.skipped > 0 {
                meta.insert(META_SKIPPED.into(), answer.skipped.into());
            }
            Answer { text: answer.text, structured: answer.structured, meta, ending: CallOutcome::Done }
        }
        Err(fault) => {
            let mut data = fault.to_json(path);
            meta.insert(META_ERROR.into(), data.clone());
            let ending = match fault.is_about_arguments() {
                true => {
                    data["reason"] = "invalid_arguments".into();
                    CallOutcome::BadArguments(data)
                }
                false => CallOutcome::Failed,
            };
            Answer { text: fault.to_text(), structured: None, meta, ending }
        }
    }
}
