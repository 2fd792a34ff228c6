//! A storm: the real gateway with backends of every kind that are killed, stopped and made to misbehave, one fault
//! every second, while clients of every kind call tools all the time and some of them vanish.
//!
//! Every argument is unique, so that the right answer is known; every run of a tool is written down, so that one that
//! runs twice is found; and what the gateway holds afterwards is compared with what it held before.

mod call_log;
pub mod cast;
mod clients;
pub mod dice;
mod fault;
mod figures;
mod mode;
mod processes;
pub mod server;
mod world;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::gateway::GatewayProcess;
use crate::http_client::HttpClient;
use crate::pipe_client::PipeClient;
use crate::scene;
use cast::Cast;
use dice::Dice;
use fault::Storm;
use figures::Figures;
use world::{BOUND, World};

/// How often a fault strikes.
const FAULT_EVERY: Duration = Duration::from_secs(1);
/// How long clients call before the first fault, so that what is opened at the first use is open.
const WARM_UP: Duration = Duration::from_secs(4);
/// Maximum time until every backend serves again after all faults; a backoff may have grown to a minute.
const RECOVERY: Duration = Duration::from_secs(180);
/// Maximum time until the gateway's memory shrinks: idle connections and parked streams last up to two minutes.
const REST: Duration = Duration::from_secs(240);
/// Lifetime of idle connections to backends, and some more.
const IDLE: Duration = Duration::from_secs(8);
/// Settings besides the backends: sessions that nobody ends expire soon.
const SETTINGS: &str = "[mcp.protocol.security]\nsession_timeout = 20\n";

/// Runs a storm of this length; returns an account of it.
///
/// # Errors
/// When anything was not as it should be; the message has the account.
pub async fn run(seed: u64, length: Duration) -> anyhow::Result<String> {
    let mut dice = Dice::new(seed);
    let cast = Arc::new(Cast::start().await?);
    let config = format!("{SETTINGS}{}", cast.config()?);
    let tcp_config = format!("[mcp.protocol.transport]\ntype = \"tcp\"\n{config}");
    let gateway = GatewayProcess::serve(&config).await?;
    let tcp_gateway = GatewayProcess::serve_tcp(&tcp_config).await?;
    let gateways = [&gateway, &tcp_gateway];
    let world = World::new(Arc::clone(&cast), gateway.address(), tcp_gateway.address(), config);
    recover(&world, &gateways).await.context("before the storm")?;

    let clients = clients::set_off(&world, &mut dice);
    sleep(WARM_UP).await;
    finish(&world, clients).await;
    let before = [at_rest(&gateway, None).await?, at_rest(&tcp_gateway, None).await?];

    world.finish(false);
    let clients = clients::set_off(&world, &mut dice);
    let mut storm = Storm::new(Arc::clone(&cast), dice.fork());
    let end = Instant::now() + length;
    while Instant::now() < end {
        if let Some(fault) = storm.strike() {
            world.call_log.struck(fault);
        }
        sleep(FAULT_EVERY).await;
    }
    storm.passes().await.context("a fault could not be lifted")?;
    finish(&world, clients).await;
    let lifted = Instant::now();
    let recovered = recover(&world, &gateways).await;
    let recovery = lifted.elapsed();
    world.call_log.compare(&cast)?;

    let mut account = format!("{}\nchaos: every backend served again after {recovery:?}", world.call_log);
    let mut failures: Vec<String> = recovered.err().map(|error| format!("{error:#}")).into_iter().collect();
    for (gateway, before) in gateways.into_iter().zip(before) {
        let after = at_rest(gateway, Some(&before)).await?;
        account += &format!("\nchaos: before {before}\nchaos: after  {after}");
        failures.extend(after.beyond(&before));
        if after.descriptors > before.descriptors {
            let pid = gateway.process.pid().unwrap_or_default();
            failures.push(format!("open descriptors: {}", processes::descriptor_targets(pid).join(" ")));
            failures.push(format!("backends: {}", scene::status(&gateway.data_dir()).await?["backends"]));
        }
        failures.extend(gateway.process.error_lines().iter().filter(|line| line.contains("panicked")).cloned());
    }
    let (wrongs, _) = world.call_log.wrongs();
    ensure!(world.call_log.right() > 0, "nothing was answered rightly\n{account}");
    if wrongs > 0 || !failures.is_empty() {
        let lines: Vec<_> = gateways.iter().flat_map(|one| one.process.error_lines()).collect();
        let log = std::env::temp_dir().join(format!("chaos-{seed}-{}.log", std::process::id()));
        std::fs::write(&log, lines.join("\n"))?;
        bail!("{account}\n{}\nwhat the gateways logged is in {}", failures.join("\n"), log.display());
    }
    Ok(account)
}

/// Has all clients finish what they have begun and leave.
async fn finish(world: &World, mut clients: tokio::task::JoinSet<()>) {
    world.finish(true);
    let leaving = async { while clients.join_next().await.is_some() {} };
    if timeout(BOUND * 2, leaving).await.is_err() {
        world.call_log.wrong("clients wait for something that does not come".to_owned());
    }
}

/// Waits until every backend answers clients of both eras through every gateway.
async fn recover(world: &World, gateways: &[&GatewayProcess; 2]) -> anyhow::Result<()> {
    let [http, tcp] = gateways;
    let deadline = Instant::now() + RECOVERY;
    for part in &world.cast.parts {
        let params = || {
            let tag = format!("probe-{}", world.number());
            (json!({"name": part.tool, "arguments": {"tag": tag}}), format!("{}:{tag}", part.name))
        };
        loop {
            let mut answers = Vec::new();
            let client = HttpClient::new(http.address());
            let (call, expected) = params();
            answers.push((client.modern(1, "tools/call", call).await.and_then(|answer| answer.message()), expected));
            let (call, expected) = params();
            let session = client.initialize("2025-11-25", json!({})).await?;
            answers.push((session.request(1, "tools/call", call).await, expected));
            session.send(http::Method::DELETE, "/mcp", bytes::Bytes::new()).await?;
            let (call, expected) = params();
            let mut pipe = PipeClient::tcp(tcp.address()).await?;
            answers.push((pipe.modern(1, "tools/call", call).await, expected));
            let right = |(answer, expected): &(anyhow::Result<serde_json::Value>, String)| {
                answer.as_ref().is_ok_and(|answer| scene::text(answer).as_ref() == Some(expected))
            };
            if answers.iter().all(right) {
                break;
            }
            ensure!(Instant::now() < deadline, "{} does not serve: {answers:?}", part.name);
            sleep(Duration::from_millis(200)).await;
        }
    }
    Ok(())
}

/// What a gateway holds once it is at rest: once it holds no more than before, where that is known.
async fn at_rest(gateway: &GatewayProcess, before: Option<&Figures>) -> anyhow::Result<Figures> {
    let deadline = Instant::now() + REST;
    loop {
        let figures = Figures::of(gateway).await?;
        let back = before.is_none_or(|before| figures.beyond(before).is_empty());
        if figures.is_quiet() && back && before.is_some() || Instant::now() > deadline {
            return Ok(figures);
        }
        if figures.is_quiet() && before.is_none() {
            sleep(IDLE).await;
            return Figures::of(gateway).await;
        }
        sleep(Duration::from_millis(500)).await;
    }
}
