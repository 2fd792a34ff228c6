//! Closed-loop load: each connection sends a call, waits for its response, checks it, and sends the next, at once or
//! when it is due.
//!
//! All connections share one thread, so that the measured servers keep the other cores.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::args::Args;
use crate::gauge::{Peaks, Reading};
use crate::http_connection::{HttpConnection, ResponseHead};
use crate::outcome::{LoadOutcome, LoadTally};
use crate::pace::Pace;
use crate::page_text::PageText;
use crate::pipe_server::PipeServer;
use crate::plan::{ID_FIRST, ID_SPAN, Plan};
use crate::request::{Channel, LoadEra, LoadTarget, PreparedCall};

/// Number of failed calls after which a connection gives up.
pub const ERRORS_MAX: u64 = 1000;
/// Time allowed for the server to list its tools, and for the last calls to end.
const GRACE: Duration = Duration::from_secs(10);
const LIST_RETRY: Duration = Duration::from_millis(50);

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// Shared phase of the run.
#[derive(Clone, Debug, Default)]
pub struct LoadPhase(Arc<AtomicU8>);

impl LoadPhase {
    /// Returns true once no further call may be made.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OVER
    }

    /// Records the outcome of a call. Latencies count only while measuring, failures always.
    pub fn note(&self, tally: &mut LoadTally, latency: Duration, outcome: io::Result<()>) {
        match outcome {
            Err(error) => tally.fail(1, &error.to_string()),
            Ok(()) if self.0.load(Ordering::Relaxed) == MEASURING => tally.latencies.record(latency),
            Ok(()) => {}
        }
    }

    fn enter(&self, phase: u8) {
        self.0.store(phase, Ordering::Relaxed);
    }
}

/// Runs the load and prints its numbers. Fails if no call succeeded.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let plan = Plan::read(args)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(drive(&plan))?;
    println!("{}", outcome.json(&plan));
    if outcome.tally.latencies.total() == 0 && outcome.tally.errors > 0 {
        return Ok(ExitCode::FAILURE);
    }
    if outcome.tally.latencies.total() == 0 {
        return Err(io::Error::other("no call was answered in the measured time"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Connections that are about to make calls.
struct Ready {
    running: JoinSet<LoadTally>,
    phase: LoadPhase,
    body_bytes: usize,
    pids: Vec<u32>,
}

async fn drive(plan: &Plan) -> io::Result<LoadOutcome> {
    let Ready { mut running, phase, body_bytes, pids } = match &plan.target.way {
        Channel::Http { .. } => connect(plan).await?,
        Channel::Pipe => pipe(plan).await?,
    };
    // Without a warm-up, do not even yield: a few calls may be over by then.
    if !plan.warmup.is_zero() {
        sleep(plan.warmup).await;
    }
    let before = Reading::take(&pids)?;
    let started = Instant::now();
    phase.enter(MEASURING);
    let mut tally = LoadTally::default();
    let ended_early = timeout(plan.window, tally.gather(&mut running)).await;
    let elapsed = started.elapsed();
    phase.enter(OVER);
    let used = Reading::take(&pids)?.since(&before);
    let peaks = Peaks::take(&pids)?;
    if ended_early.is_err() && timeout(GRACE, tally.gather(&mut running)).await.is_err() {
        tally.fail(running.len() as u64, "calls were never answered");
    }
    Ok(LoadOutcome { body_bytes, elapsed, pids, used, peaks, tally })
}

async fn pipe(plan: &Plan) -> io::Result<Ready> {
    let pipe = timeout(GRACE, PipeServer::open(plan)).await??;
    let (phase, mut running) = (LoadPhase::default(), JoinSet::new());
    phase.enter(WARMING);
    let (body_bytes, pids) = (pipe.body_bytes(), vec![pipe.pid()]);
    running.spawn(pipe.run(phase.clone()));
    Ok(Ready { running, phase, body_bytes, pids })
}

async fn connect(plan: &Plan) -> io::Result<Ready> {
    let mut callers: Vec<Caller> = Vec::new();
    let mut tool = plan.tool.clone();
    let mut shared = None;
    for index in 0..plan.connections {
        let opening = match shared.clone().filter(|_| plan.one_session) {
            Some(id) => timeout(GRACE, LoadSession::join(&plan.target, id)).await,
            None => timeout(GRACE, LoadSession::open(&plan.target)).await,
        };
        let mut session = opening??;
        shared = session.id.clone();
        let name = match tool.take() {
            Some(name) => name,
            None => timeout(GRACE, session.find_tool(&plan.target)).await??,
        };
        let call = plan.target.call(session.id.as_deref(), &name, plan.payload);
        tool = Some(name);
        callers.push(Caller {
            connection: session.connection,
            call,
            pages: plan.pages.clone(),
            next_id: ID_FIRST + index * ID_SPAN,
            calls_left: plan.calls_each,
            pace: None,
        });
    }
    let body_bytes = callers.first().map_or(0, |caller| caller.call.body_bytes);
    // Stagger the connections, so that calls do not come in bursts.
    for (index, caller) in callers.iter_mut().enumerate() {
        let turn = |pause: Duration| Pace::new(pause, pause.mul_f64(index as f64 / plan.connections as f64));
        caller.pace = plan.pause.map(turn).transpose()?;
    }
    let (phase, mut running) = (LoadPhase::default(), JoinSet::new());
    for caller in callers {
        running.spawn(caller.run(phase.clone()));
    }
    Ok(Ready { running, phase, body_bytes, pids: plan.pids.clone() })
}

/// Connection that is ready for calls.
pub struct LoadSession {
    pub connection: HttpConnection,
    /// Id of the session, if the server gave one.
    pub id: Option<String>,
}

impl LoadSession {
    async fn connection(target: &LoadTarget) -> io::Result<HttpConnection> {
        match &target.way {
            Channel::Http { address, .. } => HttpConnection::open(*address).await,
            Channel::Pipe => Err(io::Error::other("a pipe has no connections")),
        }
    }

    /// Opens another connection of an open session.
    async fn join(target: &LoadTarget, id: String) -> io::Result<Self> {
        Ok(Self { connection: Self::connection(target).await?, id: Some(id) })
    }

    async fn open(target: &LoadTarget) -> io::Result<Self> {
        let mut opened = Self { connection: Self::connection(target).await?, id: None };
        opened.initialize(target).await?;
        Ok(opened)
    }

    /// Opens a session on this connection, which may have carried others before.
    pub async fn initialize(&mut self, target: &LoadTarget) -> io::Result<()> {
        if target.era == LoadEra::New {
            return Ok(());
        }
        let head = self.connection.exchange(&target.initialize()).await?;
        if head.status != 200 {
            return Err(refused("initialize", &head, &self.connection));
        }
        self.id = head.session;
        let head = self.connection.exchange(&target.initialized(self.id.as_deref())).await?;
        if !matches!(head.status, 200 | 202 | 204) {
            return Err(refused("initialized", &head, &self.connection));
        }
        Ok(())
    }

    /// Finds the tool whose name is or ends with `echo`. A gateway may prefix it with its backend's name, and may need
    /// a moment until it knows its backends.
    async fn find_tool(&mut self, target: &LoadTarget) -> io::Result<String> {
        let request = target.list(self.id.as_deref());
        let mut tries = GRACE.as_millis() / LIST_RETRY.as_millis();
        loop {
            let head = self.connection.exchange(&request).await?;
            if let Some(name) = echo_tool(self.connection.body()) {
                return Ok(name);
            }
            tries -= 1;
            // A refusal is permanent; only a server that is still starting may have no tools yet.
            if tries == 0 || matches!(head.status, 400..=499) {
                return Err(refused("tools/list", &head, &self.connection));
            }
            sleep(LIST_RETRY).await;
        }
    }
}

/// Returns the name of the first tool in a list that is, or ends with, `echo`.
pub fn echo_tool(list: &[u8]) -> Option<String> {
    const KEY: &[u8] = br#""name":"#;
    memmem::find_iter(list, KEY).find_map(|at| {
        let value = list[at + KEY.len()..].trim_ascii_start().strip_prefix(b"\"")?;
        let name = value.split(|&byte| byte == b'"').next()?;
        name.ends_with(b"echo").then(|| String::from_utf8_lossy(name).into_owned())
    })
}

/// Creates the error for a refused request.
pub fn refused(what: &str, head: &ResponseHead, connection: &HttpConnection) -> io::Error {
    let body = connection.body();
    let start = String::from_utf8_lossy(&body[..body.len().min(300)]);
    io::Error::other(format!("{what} was answered {} {start}", head.status))
}

/// Loop of one connection.
struct Caller {
    connection: HttpConnection,
    call: PreparedCall,
    pages: Option<PageText>,
    next_id: u64,
    calls_left: u64,
    pace: Option<Pace>,
}

impl Caller {
    async fn run(mut self, phase: LoadPhase) -> LoadTally {
        let mut tally = LoadTally::default();
        while self.calls_left > 0 && tally.errors < ERRORS_MAX && !phase.is_over() {
            self.calls_left -= 1;
            if let Some(pace) = &mut self.pace
                && let Err(error) = pace.wait().await
            {
                tally.fail(1, &error.to_string());
                break;
            }
            let started = Instant::now();
            let outcome = self.call_once().await;
            phase.note(&mut tally, started.elapsed(), outcome);
        }
        tally
    }

    async fn call_once(&mut self) -> io::Result<()> {
        if self.connection.is_closing() {
            self.connection.reopen().await?;
        }
        self.next_id += 1;
        if let Some(pages) = &self.pages {
            pages.fill(self.next_id, self.call.text_mut());
        }
        let request = self.call.with_id(self.next_id);
        match self.connection.exchange(request).await {
            Ok(head) if head.status == 200 && is_answer(self.connection.body(), &self.call) => Ok(()),
            Ok(head) => Err(refused("tools/call", &head, &self.connection)),
            Err(error) => {
                self.connection.reopen().await?;
                Err(error)
            }
        }
    }
}

/// Returns true if a body is the successful result of that call: it has the id, is long enough for the text, and is not
/// marked as an error.
pub fn is_answer(body: &[u8], call: &PreparedCall) -> bool {
    body.len() > call.text_bytes
        && memmem::find(body, call.id()).is_some()
        && memmem::find(body, br#""result""#).is_some()
        && memmem::rfind(&body[body.len().saturating_sub(200)..], br#""isError":true"#).is_none()
}

#[cfg(test)]
mod tests {
    use super::echo_tool;

    #[test]
    fn the_tool_is_found_under_any_prefix() {
        let list = br#"{"tools":[{"name":"other"},{"name": "demo/echo","title":"echo"}]}"#;
        assert_eq!(echo_tool(list).as_deref(), Some("demo/echo"));
        assert_eq!(echo_tool(br#"{"tools":[{"name":"echo_"}]}"#), None);
    }
}
