//! A client with several calls at a time on one connection; every answer must be to one of them, once.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::wire::{Means, StormWire};
use crate::chaos::call_log::LoggedCall;
use crate::chaos::world::{BOUND, StormCaller};

/// Most calls at a time.
const WIDTH: usize = 4;
/// How often calls are looked for that have waited too long.
const LOOK: Duration = Duration::from_millis(500);

/// Opens one connection after the other until the world says to leave.
pub async fn piped(mut caller: StormCaller, means: Means) {
    while !caller.world.is_finishing() {
        if let Err(error) = connection(&mut caller, means).await {
            caller.wrong(format!("{error:#}"));
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// One connection, until the client vanishes or is to leave.
async fn connection(caller: &mut StormCaller, means: Means) -> anyhow::Result<()> {
    let mut wire = StormWire::open(&caller.world, means).await?;
    if !caller.modern {
        tokio::time::timeout(BOUND, greet(&mut wire)).await.context("no handshake in time")??;
    }
    // A gateway of one's own takes a while to start, so that it is not left as lightly.
    let vanishes_after = if means == Means::Stdio { 400 } else { 60 };
    let mut stays = caller.dice.between(1, vanishes_after);
    let mut pending: HashMap<u64, LoggedCall> = HashMap::new();
    let mut finishing = caller.world.finishing();
    loop {
        let leaves = *finishing.borrow_and_update();
        if leaves && pending.is_empty() {
            return wire.close().await;
        }
        let pause = caller.pause();
        tokio::select! {
            message = wire.input.recv() => match message {
                Some(text) => heard(caller, &mut pending, &text)?,
                None => bail!("the gateway ended a connection with {} calls open", pending.len()),
            },
            () = tokio::time::sleep(pause), if !leaves && pending.len() < WIDTH => {
                let Some(call) = caller.call() else { continue };
                let text = call.message(caller.modern).to_string();
                pending.insert(call.id, call);
                wire.out.send(text).await.context("the gateway ended a connection")?;
                stays = stays.saturating_sub(1);
                if stays == 0 {
                    // Sometimes before the gateway has read it, sometimes while the backend works on it.
                    tokio::time::sleep(Duration::from_millis(caller.dice.below(30))).await;
                    pending.values().for_each(|_| caller.world.call_log.vanished());
                    return Ok(());
                }
            }
            _ = finishing.changed() => {}
            () = tokio::time::sleep(LOOK), if leaves || pending.len() >= WIDTH => {}
        }
        let late: Vec<u64> = pending.values().filter(|call| call.sent.elapsed() > BOUND).map(|call| call.id).collect();
        for call in late.iter().filter_map(|id| pending.remove(id)) {
            caller.wrong(format!("{} at {} was not answered in {BOUND:?}", call.tag, call.backend));
        }
    }
}

fn heard(caller: &StormCaller, pending: &mut HashMap<u64, LoggedCall>, text: &str) -> anyhow::Result<()> {
    let message: Value = serde_json::from_str(text).with_context(|| format!("no JSON: {text}"))?;
    let answers = message.get("method").is_none();
    match message["id"].as_u64().filter(|_| answers).and_then(|id| pending.remove(&id)) {
        Some(call) => caller.world.call_log.answered(caller.kind, &call, &message),
        None => caller.noted(&message),
    }
    Ok(())
}

async fn greet(wire: &mut StormWire) -> anyhow::Result<()> {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "chaos", "version": "1"}}});
    wire.out.send(hello.to_string()).await?;
    let answer: Value = serde_json::from_str(&wire.input.recv().await.context("no answer to the handshake")?)?;
    anyhow::ensure!(answer["result"].is_object(), "{answer}");
    wire.out.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await?;
    Ok(())
}
