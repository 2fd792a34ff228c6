//! A client of Streamable HTTP, one call at a time on a connection that it keeps.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::chaos::call_log::LoggedCall;
use crate::chaos::world::{BOUND, StormCaller};
use crate::http_client::HttpAnswer;

/// The revision that clients of the old era ask for.
const OLD: &str = "2025-11-25";

/// Calls until the world says to leave.
pub async fn web(mut caller: StormCaller) {
    let mut line = Line { address: caller.world.http, open: None, session: None };
    while !caller.world.is_finishing() {
        if let Err(error) = one(&mut caller, &mut line).await {
            caller.wrong(format!("{error:#}"));
            line.drop_connection();
            line.session = None;
        }
        tokio::time::sleep(caller.pause()).await;
    }
    if line.session.is_some() {
        // Sessions that nobody ends expire; these must not have to.
        match line.send("DELETE", &[], Bytes::new()).await {
            Ok(answer) if answer.status == 200 => {}
            other => caller.wrong(format!("the session was not ended: {other:?}")),
        }
    }
    line.drop_connection();
}

/// One call, and what comes before it.
async fn one(caller: &mut StormCaller, line: &mut Line) -> anyhow::Result<()> {
    if !caller.modern && line.session.is_none() {
        line.initialize().await.context("no session")?;
    }
    let Some(call) = caller.call() else { return Ok(()) };
    let vanishes = caller.dice.once_in(20).then(|| Duration::from_millis(caller.dice.below(60)));
    let message = call.message(caller.modern).to_string();
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", &call.tool)];
    let headers = if caller.modern { &headers[..] } else { &[] };
    let sending = line.send("POST", headers, Bytes::from(message));
    let answer = match tokio::time::timeout(vanishes.unwrap_or(BOUND), sending).await {
        Ok(answer) => answer.with_context(|| format!("{} at {}", call.tag, call.backend))?,
        Err(_) if vanishes.is_some() => {
            caller.world.call_log.vanished();
            line.drop_connection();
            if caller.dice.once_in(3) {
                line.session = None;
            }
            return Ok(());
        }
        Err(_) => anyhow::bail!("{} at {} was not answered in {BOUND:?}", call.tag, call.backend),
    };
    judge(caller, &call, &answer)
}

fn judge(caller: &StormCaller, call: &LoggedCall, answer: &HttpAnswer) -> anyhow::Result<()> {
    let messages = answer.messages()?;
    let is_answer = |message: &&Value| message["id"] == call.id && message.get("method").is_none();
    let answers: Vec<&Value> = messages.iter().filter(is_answer).collect();
    ensure!(answers.len() == 1, "{} got {} answers: {answer:?}", call.tag, answers.len());
    messages.iter().filter(|message| !is_answer(message)).for_each(|message| caller.noted(message));
    answers.iter().for_each(|answer| caller.world.call_log.answered(caller.kind, call, answer));
    Ok(())
}

/// A connection and the session that is spoken of on it.
struct Line {
    address: SocketAddr,
    open: Option<(SendRequest<Full<Bytes>>, AbortHandle)>,
    session: Option<String>,
}

impl Line {
    /// Ends the connection without a word.
    fn drop_connection(&mut self) {
        if let Some((_, connection)) = self.open.take() {
            connection.abort();
        }
    }

    async fn initialize(&mut self) -> anyhow::Result<()> {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": OLD,
            "capabilities": {}, "clientInfo": {"name": "chaos", "version": "1"}}});
        let answer = self.send("POST", &[], Bytes::from(hello.to_string())).await?;
        let session = answer.headers.get("mcp-session-id").with_context(|| format!("{answer:?}"))?.to_str()?.to_owned();
        self.session = Some(session);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = self.send("POST", &[], Bytes::from(note.to_string())).await?;
        ensure!(answer.status == 202, "{answer:?}");
        Ok(())
    }

    async fn send(&mut self, method: &str, headers: &[(&str, &str)], body: Bytes) -> anyhow::Result<HttpAnswer> {
        if self.open.as_ref().is_none_or(|(sender, _)| sender.is_closed()) {
            let socket = TcpStream::connect(self.address).await.context("no connection")?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
            self.open = Some((sender, tokio::spawn(connection).abort_handle()));
        }
        let (sender, _) = self.open.as_mut().context("it was opened")?;
        let mut request = Request::builder().method(method).uri("/mcp").header("host", self.address.to_string());
        request = request.header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", OLD);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        sender.ready().await.context("the gateway ended a connection between two requests")?;
        let (head, body) = sender.send_request(request.body(Full::new(body))?).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(HttpAnswer { status: head.status.as_u16(), headers: head.headers, body })
    }
}
