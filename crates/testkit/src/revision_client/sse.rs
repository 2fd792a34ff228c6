//! HTTP+SSE: one stream of events from the server, and a path to post to.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::ears::Ears;
use super::events::Events;
use super::http::{HttpEndpoint, Opened};
use super::wire::{ClientWire, QUEUE, TaskGuard};
use crate::wire_log::Tap;

/// Connects: opens the stream, and waits for the path to post to.
///
/// # Errors
/// When the server refuses.
pub async fn open(url: &str, ears: Arc<Ears>) -> anyhow::Result<ClientWire> {
    let place = HttpEndpoint::of(url)?;
    let opened = place.open(Method::GET, &[("accept", "text/event-stream")], String::new()).await?;
    ensure!(opened.response.status() == 200, "the stream is refused with {}", opened.response.status());
    let kind = opened.response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    ensure!(kind.starts_with("text/event-stream"), "the stream is {kind}");
    let (out, queue) = mpsc::channel(QUEUE);
    let (told, endpoint) = oneshot::channel();
    let tap = ears.log.connection();
    let reading = tokio::spawn(read(opened, ears.clone(), (out.clone(), tap.clone()), told)).abort_handle();
    let reading = TaskGuard(reading);
    let path = endpoint.await.context("the stream ended without an endpoint")?;
    let path = path.strip_prefix(&format!("http://{}", place.address)).unwrap_or(&path).to_owned();
    ensure!(path.starts_with('/'), "the endpoint {path} is elsewhere");
    let place = HttpEndpoint { path, ..place };
    let writing = tokio::spawn(write(place, ears, queue, tap)).abort_handle();
    Ok(ClientWire::Pipe { out, tasks: vec![reading, TaskGuard(writing)], child: None })
}

async fn read(opened: Opened, ears: Arc<Ears>, (out, tap): (mpsc::Sender<Value>, Tap), told: oneshot::Sender<String>) {
    let Opened { response, connection } = opened;
    let mut body: Incoming = response.into_body();
    let mut events = Events::default();
    let mut told = Some(told);
    while let Some(Ok(frame)) = body.frame().await {
        for event in events.feed(&frame.into_data().unwrap_or_default()) {
            match (event.kind.as_str(), told.take()) {
                // The one who waits for it may be gone.
                ("endpoint", Some(told)) => _ = told.send(event.data),
                ("endpoint", None) => ears.violation("a second endpoint"),
                (_, Some(_)) => ears.violation(format!("before the endpoint: {event:?}")),
                ("message" | "", None) => match serde_json::from_str(&event.data) {
                    Ok(message) => {
                        tap.received(&event.data);
                        for reply in ears.hear(message, None) {
                            let _ = out.send(reply).await;
                        }
                    }
                    Err(error) => ears.violation(format!("an event that is no JSON: {error}")),
                },
                (kind, None) => ears.violation(format!("an event {kind}")),
            }
        }
    }
    drop(connection);
    ears.closed("the stream ended");
}

async fn write(place: HttpEndpoint, ears: Arc<Ears>, mut queue: mpsc::Receiver<Value>, tap: Tap) {
    while let Some(message) = queue.recv().await {
        let text = message.to_string();
        tap.sent(&text);
        let answer = place.open(Method::POST, &[("content-type", "application/json")], text).await;
        let refused = match answer {
            Ok(opened) if opened.response.status().is_success() => continue,
            Ok(opened) => format!("HTTP {}", opened.response.status()),
            Err(error) => format!("{error:#}"),
        };
        ears.fail(&message["id"], anyhow::anyhow!("the message was not taken: {refused}"));
    }
}
