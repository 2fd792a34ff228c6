//! The demo tools for one peer: what they are, how they are called, and how their outcomes are told.

use super::bucket::Bucket;
use super::catalog;
use super::toolbox::{Outcome, Tool, Toolbox};
use serde_json::{Map, Value};
use signalbox_embedded::{About, Answer, Calling, Ending, Progress};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// GO-5: listings per minute, and how many of them at once.
const LISTINGS_PER_MINUTE: u32 = 120;
const LISTINGS_BURST: u32 = 10;

const META_RISK: &str = "signalbox/risk";
const META_ERROR: &str = "signalbox/error";
const META_SKIPPED: &str = "signalbox/skipped_directories";

const ABOUT: About = About {
    name: "signalbox-demo",
    title: "Signalbox demo tools",
    version: env!("CARGO_PKG_VERSION"),
    instructions: "These are the demo tools of Signalbox, here because no backend is configured yet. \
                   Paths are relative to the folder that the gateway was started in.",
};

/// The tools of one peer, which has a limit of its own.
#[derive(Debug)]
pub(super) struct Connection {
    toolbox: Arc<Toolbox>,
    listings: Bucket,
}

impl Connection {
    /// A peer that has not called anything yet.
    pub(super) fn new(toolbox: Arc<Toolbox>) -> Connection {
        Connection { toolbox, listings: Bucket::new(LISTINGS_PER_MINUTE, LISTINGS_BURST) }
    }

    /// The limit comes before the arguments are looked at, so that bad calls are not free.
    fn admit(&mut self, tool: Tool) -> Result<(), Duration> {
        match tool {
            Tool::DirectoryList => self.listings.take(Instant::now()),
            Tool::Echo | Tool::Countdown => Ok(()),
        }
    }
}

impl signalbox_embedded::Toolbox for Connection {
    fn about(&self) -> About {
        ABOUT
    }

    fn tools(&self) -> Vec<Value> {
        catalog::tools()
    }

    fn call(&mut self, tool: &str, arguments: Map<String, Value>, progress: Progress) -> Option<Calling> {
        let tool = Tool::named(tool)?;
        let (toolbox, admitted) = (Arc::clone(&self.toolbox), self.admit(tool));
        Some(Box::pin(async move { told(toolbox.call(tool, &arguments, &progress, admitted).await) }))
    }
}

fn told(outcome: Outcome) -> Answer {
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
            Answer { text: answer.text, structured: answer.structured, meta, ending: Ending::Done }
        }
        Err(fault) => {
            let mut data = fault.to_json(path);
            meta.insert(META_ERROR.into(), data.clone());
            let ending = match fault.is_about_arguments() {
                true => {
                    data["reason"] = "invalid_arguments".into();
                    Ending::BadArguments(data)
                }
                false => Ending::Failed,
            };
            Answer { text: fault.to_text(), structured: None, meta, ending }
        }
    }
}
