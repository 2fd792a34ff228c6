//! The closed-loop load: each connection sends a call, waits for its answer, checks it, and sends the next.
//!
//! All connections share one thread, so that the servers measured keep the other cores.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::args::{Args, usage};
use crate::connection::{Connection, Head};
use crate::histogram::Histogram;
use crate::process;
use crate::request::{Call, Era, Target};

/// The flags of `load`.
pub const FLAGS: &[&str] = &["url", "connections", "payload", "seconds", "warmup", "era", "tool", "max-calls", "pid"];

const CONNECTIONS_MAX: u64 = 512;
const SECONDS_MAX: f64 = 600.0;
const PAYLOAD_MAX: usize = 1024 * 1024;
/// Calls over all connections, unless told otherwise.
const CALLS_MAX: u64 = 100_000_000;
/// Failed calls after which a connection gives up.
const ERRORS_MAX: u64 = 1000;
/// How long the server may take to list its tools, and the last calls to end.
const GRACE: Duration = Duration::from_secs(10);
const LIST_RETRY: Duration = Duration::from_millis(50);
/// Ids of one connection start here, those of the next one `ID_SPAN` later.
const ID_FIRST: u64 = 100_000_000_000;
const ID_SPAN: u64 = 1_000_000_000;

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

struct Plan {
    target: Target,
    connections: u64,
    payload: usize,
    window: Duration,
    warmup: Duration,
    tool: Option<String>,
    calls_each: u64,
    pids: Vec<u32>,
}

impl Plan {
    fn read(args: &Args) -> io::Result<Self> {
        let connections: u64 = args.or("connections", 16)?;
        let payload = args.or("payload", 256)?;
        let seconds = args.or("seconds", 2.0)?;
        let warmup = args.or("warmup", 0.3)?;
        if !(1..=CONNECTIONS_MAX).contains(&connections) || payload > PAYLOAD_MAX {
            return Err(usage(format!("at most {CONNECTIONS_MAX} connections and a payload of {PAYLOAD_MAX}")));
        }
        if !(0.0..=SECONDS_MAX).contains(&seconds) || !(0.0..=SECONDS_MAX).contains(&warmup) {
            return Err(usage(format!("at most {SECONDS_MAX} seconds")));
        }
        let calls = args.or("max-calls", CALLS_MAX)?;
        Ok(Self {
            target: Target::parse(&args.required::<String>("url")?, args.or("era", Era::Old)?)?,
            connections,
            payload,
            window: Duration::from_secs_f64(seconds),
            warmup: Duration::from_secs_f64(warmup),
            tool: args.optional("tool")?,
            calls_each: calls.div_ceil(connections).min(ID_SPAN - 1),
            pids: args.all("pid")?,
        })
    }
}

/// Runs the load and prints its numbers; fails if no call succeeded.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let plan = Plan::read(args)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(drive(&plan))?;
    println!("{}", outcome.json(&plan));
    Ok(if outcome.tally.latencies.total() > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn drive(plan: &Plan) -> io::Result<Outcome> {
    let mut callers = Vec::new();
    let mut tool = plan.tool.clone();
    for index in 0..plan.connections {
        let mut session = timeout(GRACE, Session::open(&plan.target)).await??;
        let name = match tool.take() {
            Some(name) => name,
            None => timeout(GRACE, session.find_tool(&plan.target)).await??,
        };
        let call = plan.target.call(session.id.as_deref(), &name, plan.payload);
        tool = Some(name);
        callers.push(Caller {
            connection: session.connection,
            call,
            next_id: ID_FIRST + index * ID_SPAN,
            calls_left: plan.calls_each,
        });
    }
    let body_bytes = callers.first().map_or(0, |caller| caller.call.body_bytes);
    let phase = Arc::new(AtomicU8::new(WARMING));
    let mut running = JoinSet::new();
    for caller in callers {
        running.spawn(caller.run(Arc::clone(&phase)));
    }
    sleep(plan.warmup).await;
    let cpu_before = cpu(&plan.pids)?;
    let started = Instant::now();
    phase.store(MEASURING, Ordering::Relaxed);
    let mut tally = Tally::default();
    let ended_early = timeout(plan.window, tally.gather(&mut running)).await;
    let elapsed = started.elapsed();
    phase.store(OVER, Ordering::Relaxed);
    let cpu_after = cpu(&plan.pids)?;
    if ended_early.is_err() && timeout(GRACE, tally.gather(&mut running)).await.is_err() {
        tally.fail(running.len() as u64, "calls were never answered");
    }
    let cpu_us = cpu_before.iter().zip(cpu_after).map(|(before, after)| after - before);
    Ok(Outcome {
        body_bytes,
        elapsed,
        cpu_us: cpu_us.collect(),
        peak_rss_kb: plan.pids.iter().map(|&pid| process::peak_rss_kb(pid)).collect::<io::Result<_>>()?,
        tally,
    })
}

fn cpu(pids: &[u32]) -> io::Result<Vec<u64>> {
    pids.iter().map(|&pid| process::cpu_us(pid)).collect()
}

/// A connection that is ready for calls.
struct Session {
    connection: Connection,
    id: Option<String>,
}

impl Session {
    async fn open(target: &Target) -> io::Result<Self> {
        let mut connection = Connection::open(target.address).await?;
        if target.era == Era::New {
            return Ok(Self { connection, id: None });
        }
        let head = connection.exchange(&target.initialize()).await?;
        if head.status != 200 {
            return Err(refused("initialize", &head, &connection));
        }
        let id = head.session;
        let head = connection.exchange(&target.initialized(id.as_deref())).await?;
        if !matches!(head.status, 200 | 202 | 204) {
            return Err(refused("initialized", &head, &connection));
        }
        Ok(Self { connection, id })
    }

    /// The tool whose name is or ends with `echo`; a gateway may put its backend's name in front, and may need a moment
    /// until it knows its backends.
    async fn find_tool(&mut self, target: &Target) -> io::Result<String> {
        let request = target.list(self.id.as_deref());
        let mut tries = GRACE.as_millis() / LIST_RETRY.as_millis();
        loop {
            let head = self.connection.exchange(&request).await?;
            if let Some(name) = echo_tool(self.connection.body()) {
                return Ok(name);
            }
            tries -= 1;
            if tries == 0 {
                return Err(refused("tools/list", &head, &self.connection));
            }
            sleep(LIST_RETRY).await;
        }
    }
}

fn echo_tool(list: &[u8]) -> Option<String> {
    const KEY: &[u8] = br#""name":""#;
    memmem::find_iter(list, KEY).find_map(|at| {
        let name = list[at + KEY.len()..].split(|&byte| byte == b'"').next()?;
        name.ends_with(b"echo").then(|| String::from_utf8_lossy(name).into_owned())
    })
}

fn refused(what: &str, head: &Head, connection: &Connection) -> io::Error {
    let body = connection.body();
    let start = String::from_utf8_lossy(&body[..body.len().min(300)]);
    io::Error::other(format!("{what} was answered {} {start}", head.status))
}

/// One connection's loop.
struct Caller {
    connection: Connection,
    call: Call,
    next_id: u64,
    calls_left: u64,
}

impl Caller {
    async fn run(mut self, phase: Arc<AtomicU8>) -> Tally {
        let mut tally = Tally::default();
        while self.calls_left > 0 && tally.errors < ERRORS_MAX {
            if phase.load(Ordering::Relaxed) == OVER {
                break;
            }
            self.calls_left -= 1;
            let started = Instant::now();
            let outcome = self.call_once().await;
            let latency = started.elapsed();
            match (phase.load(Ordering::Relaxed), outcome) {
                (_, Err(error)) => tally.fail(1, &error.to_string()),
                (MEASURING, Ok(())) => tally.latencies.record(latency),
                (_, Ok(())) => {}
            }
        }
        tally
    }

    async fn call_once(&mut self) -> io::Result<()> {
        if self.connection.is_closing() {
            self.connection.reopen().await?;
        }
        self.next_id += 1;
        let request = self.call.with_id(self.next_id);
        match self.connection.exchange(request).await {
            Ok(head) if is_answer(&head, self.connection.body(), &self.call) => Ok(()),
            Ok(head) => Err(refused("tools/call", &head, &self.connection)),
            Err(error) => {
                self.connection.reopen().await?;
                Err(error)
            }
        }
    }
}

/// Whether this is the result of that call: its id is there, and the text can be.
fn is_answer(head: &Head, body: &[u8], call: &Call) -> bool {
    head.status == 200
        && body.len() > call.text_bytes
        && memmem::find(body, call.id()).is_some()
        && memmem::find(body, br#""result""#).is_some()
}

/// What one connection, or all of them, saw.
#[derive(Default)]
struct Tally {
    latencies: Histogram,
    errors: u64,
    first_error: Option<String>,
}

impl Tally {
    fn fail(&mut self, count: u64, why: &str) {
        self.errors += count;
        self.first_error.get_or_insert_with(|| why.to_owned());
    }

    async fn gather(&mut self, running: &mut JoinSet<Tally>) {
        while let Some(ended) = running.join_next().await {
            match ended {
                Ok(tally) => {
                    self.latencies.merge(&tally.latencies);
                    if let Some(why) = tally.first_error {
                        self.fail(tally.errors, &why);
                    }
                }
                Err(error) => self.fail(1, &error.to_string()),
            }
        }
    }
}

struct Outcome {
    body_bytes: usize,
    elapsed: Duration,
    cpu_us: Vec<u64>,
    peak_rss_kb: Vec<u64>,
    tally: Tally,
}

impl Outcome {
    fn json(&self, plan: &Plan) -> String {
        let latencies = &self.tally.latencies;
        let calls = latencies.total();
        let per_call = |cpu_us: u64| cpu_us as f64 / calls.max(1) as f64;
        let pids: Vec<String> = plan
            .pids
            .iter()
            .zip(self.cpu_us.iter().zip(&self.peak_rss_kb))
            .map(|(pid, (&cpu, peak))| {
                format!(r#"{{"pid":{pid},"cpu_us_per_call":{:.2},"peak_rss_kb":{peak}}}"#, per_call(cpu))
            })
            .collect();
        if let Some(why) = &self.tally.first_error {
            eprintln!("signalbox-bench load: first error: {why}");
        }
        format!(
            r#"{{"era":"{}","connections":{},"payload":{},"body_bytes":{},"seconds":{:.3},"calls":{calls},"errors":{},"rate":{:.1},"p50_us":{:.1},"p99_us":{:.1},"cpu_us_per_call":{:.2},"peak_rss_kb":{},"pids":[{}]}}"#,
            plan.target.era,
            plan.connections,
            plan.payload,
            self.body_bytes,
            self.elapsed.as_secs_f64(),
            self.tally.errors,
            calls as f64 / self.elapsed.as_secs_f64(),
            latencies.quantile_us(0.5),
            latencies.quantile_us(0.99),
            per_call(self.cpu_us.iter().sum()),
            self.peak_rss_kb.iter().sum::<u64>(),
            pids.join(","),
        )
    }
}
