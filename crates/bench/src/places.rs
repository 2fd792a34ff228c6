//! Calls at many positions of one long tape: time from process start to the first response, and memory usage.

use std::io;
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::args::{Args, usage};
use crate::http_connection::HttpConnection;
use crate::load::{LoadSession, refused};
use crate::process;
use crate::request::{Channel, LoadEra, LoadTarget};

/// The flags of `places` that take a value.
pub const FLAGS: &[&str] = &["url", "command", "of", "calls", "tool", "most-ms", "most-kb"];

/// Timeout for the first response of the process, and for any call.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval of connection attempts while the process does not listen yet.
const RETRY: Duration = Duration::from_millis(1);
/// Distance between consecutive calls: a prime, so that they cover the whole tape.
const STRIDE: u64 = 104_729;

/// Starts the command and makes the calls. Fails if the first response or the memory exceeds its limit.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let walk = Walk::read(args)?;
    let most_ms: f64 = args.or("most-ms", 1000.0)?;
    let most_kb: u64 = args.or("most-kb", 100_000_000 / 1024)?;
    let command: String = args.required("command")?;
    let mut words = command.split_whitespace();
    let program = words.next().ok_or_else(|| usage("--command is empty".to_owned()))?;
    let started = Instant::now();
    let server = Server(Command::new(program).args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let seen = runtime.block_on(walk.go(started, server.0.id()))?;
    drop(server);
    println!("{}", seen.line(&walk));
    let met = seen.first.as_secs_f64() * 1000.0 < most_ms && seen.peak_kb < most_kb;
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Process that plays the tape. It is killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls to make on the tape, and their target.
struct Walk {
    target: LoadTarget,
    address: SocketAddr,
    tool: String,
    /// Number of calls on the tape: `{"n": 0}` and so on.
    of: u64,
    calls: u64,
}

/// Measured times and memory.
struct Measurement {
    first: Duration,
    first_kb: u64,
    far: Duration,
    rest: Duration,
    peak_kb: u64,
}

impl Measurement {
    fn line(&self, walk: &Walk) -> String {
        let mib = |kb: u64| kb as f64 / 1024.0;
        let rate = (walk.calls.saturating_sub(2)) as f64 / self.rest.as_secs_f64().max(1e-9);
        format!(
            "places: first answer after {:.0} ms with {:.1} MiB; the call at the end of the tape took {:.0} ms; \
             {} calls at places all over it, {rate:.0} a second; peak memory {:.1} MiB ({:.1} MB)",
            self.first.as_secs_f64() * 1000.0,
            mib(self.first_kb),
            self.far.as_secs_f64() * 1000.0,
            walk.calls,
            mib(self.peak_kb),
            self.peak_kb as f64 * 1024.0 / 1e6,
        )
    }
}

impl Walk {
    fn read(args: &Args) -> io::Result<Self> {
        let url: String = args.required("url")?;
        let target = LoadTarget::parse(&url, LoadEra::Old)?;
        let Channel::Http { address, .. } = target.way else { return Err(usage("--url is needed".to_owned())) };
        let (of, calls) = (args.required("of")?, args.or("calls", 10_000)?);
        if of < STRIDE || calls > of {
            return Err(usage(format!("a tape of at least {STRIDE} calls, and not more calls than it has")));
        }
        Ok(Self { target, address, tool: args.or("tool", "echo".to_owned())?, of, calls })
    }

    async fn go(&self, started: Instant, pid: u32) -> io::Result<Measurement> {
        let mut session = timeout(PATIENCE, self.session()).await??;
        self.call(&mut session, 0).await?;
        let (first, first_kb) = (started.elapsed(), process::peak_rss_kb(pid)?);
        let before = Instant::now();
        self.call(&mut session, self.of - 1).await?;
        let (far, before) = (before.elapsed(), Instant::now());
        for number in 1..self.calls.saturating_sub(1) {
            self.call(&mut session, number.wrapping_mul(STRIDE) % (self.of - 1)).await?;
        }
        Ok(Measurement { first, first_kb, far, rest: before.elapsed(), peak_kb: process::peak_rss_kb(pid)? })
    }

    /// Opens a session with the process once it listens.
    async fn session(&self) -> io::Result<LoadSession> {
        let connection = loop {
            match HttpConnection::open(self.address).await {
                Ok(connection) => break connection,
                Err(_) => sleep(RETRY).await,
            }
        };
        let mut session = LoadSession { connection, id: None };
        session.initialize(&self.target).await?;
        Ok(session)
    }

    /// Makes call `number` and looks for the number in its response.
    async fn call(&self, session: &mut LoadSession, number: u64) -> io::Result<()> {
        let request = self.target.numbered(session.id.as_deref(), &self.tool, number);
        let head = timeout(PATIENCE, session.connection.exchange(&request)).await??;
        let wanted = format!("answer {number}.");
        if head.status == 200 && memmem::find(session.connection.body(), wanted.as_bytes()).is_some() {
            return Ok(());
        }
        Err(refused(&format!("call {number}"), &head, &session.connection))
    }
}
