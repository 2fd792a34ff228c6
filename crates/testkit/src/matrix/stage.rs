//! The server of a cell: a child process of the gateway, or one that runs here.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::places::Back;
use crate::process::built;
use crate::revision_server::{self, Network, Options, Running};

/// The config of a backend that is such a server, and the server if it runs here.
///
/// # Errors
/// When the server is not built, or does not start.
pub async fn backend(options: &Options, back: Back) -> anyhow::Result<(String, Option<Running>)> {
    let network = match back {
        Back::Stdio => {
            let program = text(&built("revision-server")?)?;
            let arguments = json!(arguments(options)?);
            return Ok((format!("[backends.only]\ncommand = {program}\nargs = {arguments}\n"), None));
        }
        Back::Http => Network::Http,
        Back::Sse => Network::Sse,
        Back::Ws => Network::Ws,
    };
    let server = revision_server::start(options, network, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    Ok((format!("[backends.only]\nurl = \"{}\"\n", server.url()), Some(server)))
}

fn arguments(options: &Options) -> anyhow::Result<Vec<Value>> {
    let mut all = vec![json!("--stdio"), json!("--revision"), json!(options.revision.name())];
    let files = [("--journal", &options.journal), ("--wire-log", &options.wire_log)];
    for (name, path) in files.into_iter().filter_map(|(name, path)| Some((name, path.as_ref()?))) {
        all.extend([json!(name), text(path)?]);
    }
    if options.odd {
        all.push(json!("--odd"));
    }
    Ok(all)
}

fn text(path: &Path) -> anyhow::Result<Value> {
    Ok(json!(path.to_str().context("a path that is no text")?))
}
