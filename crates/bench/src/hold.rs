//! Load of idle clients: sessions without a connection, and event streams that are read.
//!
//! Each client process runs it once. Lines on stdin query what has happened since.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::args::{Args, usage};
use crate::events::EventCounter;
use crate::http_connection::HttpConnection;
use crate::load::{LoadSession, refused};
use crate::plan::ID_FIRST;
use crate::request::{Channel, LoadEra, LoadTarget};

/// The flags of `hold` that take a value.
pub const FLAGS: &[&str] = &["url", "sessions", "streams", "era", "follow", "source"];
/// The flags that do not.
pub const SWITCHES: &[&str] = &["used", "slow"];

const SESSIONS_MAX: usize = 1_000_000;
const STREAMS_MAX: usize = 100_000;
/// Number of concurrent tasks that open sessions and streams.
const LANES: usize = 8;
/// Size of the read buffer.
const BUFFER: usize = 4096;
/// Receive buffer of a slow client's socket.
const SLOW_BUFFER: u32 = 4096;

struct Plan {
    target: LoadTarget,
    address: SocketAddr,
    source: IpAddr,
    sessions: usize,
    streams: usize,
    follow: Option<String>,
    used: bool,
    slow: bool,
}

impl Plan {
    fn read(args: &Args) -> io::Result<Self> {
        let target = LoadTarget::parse(&args.required::<String>("url")?, args.or("era", LoadEra::Old)?)?;
        let Channel::Http { address, .. } = target.way else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (sessions, streams) = (args.or("sessions", 0)?, args.or("streams", 0)?);
        if sessions > SESSIONS_MAX || streams > STREAMS_MAX {
            return Err(usage(format!("at most {SESSIONS_MAX} sessions and {STREAMS_MAX} streams")));
        }
        Ok(Self {
            target,
            address,
            source: args.or("source", IpAddr::V4(Ipv4Addr::LOCALHOST))?,
            sessions,
            streams,
            follow: args.optional("follow")?,
            used: args.has("used"),
            slow: args.has("slow"),
        })
    }
}

/// Opens everything, prints a line, and answers `count` until stdin ends.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let plan = Arc::new(Plan::read(args)?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(hold(plan))?;
    Ok(ExitCode::SUCCESS)
}

async fn hold(plan: Arc<Plan>) -> io::Result<()> {
    open_sessions(&plan).await?;
    let (reading, read) = watch::channel(!plan.slow);
    let held = open_streams(&plan, &read).await?;
    println!(r#"held {{"sessions":{},"streams":{}}}"#, plan.sessions, held.len());
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        match order.trim() {
            "count" => println!("{}", count(&held)),
            // A slow client starts to read.
            "read" => drop(reading.send_replace(true)),
            other => return Err(io::Error::other(format!("no order '{other}'; known: count, read"))),
        }
    }
    Ok(())
}

/// Counts of one client's stream.
#[derive(Debug, Default)]
struct StreamCounts {
    lists: AtomicU64,
    updates: AtomicU64,
    ended: AtomicU64,
}

/// Renders the minimum, maximum and sum over all streams.
fn count(held: &[Arc<StreamCounts>]) -> String {
    let spread = |value: fn(&StreamCounts) -> &AtomicU64| {
        let all = || held.iter().map(|held| value(held).load(Ordering::Relaxed));
        format!(
            r#"{{"least":{},"most":{},"sum":{}}}"#,
            all().min().unwrap_or(0),
            all().max().unwrap_or(0),
            all().sum::<u64>()
        )
    };
    let ended: u64 = held.iter().map(|held| held.ended.load(Ordering::Relaxed)).sum();
    format!(
        r#"count {{"open":{},"lists":{},"updates":{}}}"#,
        held.len() as u64 - ended,
        spread(|held| &held.lists),
        spread(|held| &held.updates)
    )
}

/// Opens sessions one after another on a few connections, which are then closed.
async fn open_sessions(plan: &Arc<Plan>) -> io::Result<()> {
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let share = plan.sessions / LANES + usize::from(lane < plan.sessions % LANES);
        let plan = Arc::clone(plan);
        lanes.spawn(async move {
            if share == 0 {
                return Ok(());
            }
            let mut session = LoadSession { connection: connect(&plan).await?, id: None };
            for _ in 0..share {
                session.initialize(&plan.target).await?;
                if plan.used {
                    let request = plan.target.call(session.id.as_deref(), "echo", 0).with_id(ID_FIRST).to_vec();
                    ask(&mut session.connection, "tools/call", &request).await?;
                }
            }
            Ok(())
        });
    }
    all(lanes).await.map(drop)
}

async fn open_streams(plan: &Arc<Plan>, read: &watch::Receiver<bool>) -> io::Result<Vec<Arc<StreamCounts>>> {
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let share = plan.streams / LANES + usize::from(lane < plan.streams % LANES);
        let (plan, read) = (Arc::clone(plan), read.clone());
        lanes.spawn(async move {
            let mut held = Vec::with_capacity(share);
            for _ in 0..share {
                let (stream, events) = open_stream(&plan).await?;
                let one = Arc::new(StreamCounts::default());
                tokio::spawn(follow(stream, events, Arc::clone(&one), read.clone()));
                held.push(one);
            }
            Ok(held)
        });
    }
    Ok(all(lanes).await?.into_iter().flatten().collect())
}

async fn all<T: 'static>(mut lanes: JoinSet<io::Result<T>>) -> io::Result<Vec<T>> {
    let mut done = Vec::new();
    while let Some(lane) = lanes.join_next().await {
        done.push(lane.map_err(io::Error::other)??);
    }
    Ok(done)
}

/// Opens an event stream: that of a session, or an acknowledged listen request.
async fn open_stream(plan: &Plan) -> io::Result<(TcpStream, EventCounter)> {
    let mut session = LoadSession { connection: connect(plan).await?, id: None };
    session.initialize(&plan.target).await?;
    let id = session.id.as_deref();
    if let (LoadEra::Old, Some(uri)) = (plan.target.era, &plan.follow) {
        ask(&mut session.connection, "resources/subscribe", &plan.target.subscribe(id, uri)).await?;
    }
    let request = match plan.target.era {
        LoadEra::Old => plan.target.get(id),
        LoadEra::New => plan.target.listen(plan.follow.as_deref()),
    };
    let head = session.connection.begin(&request).await?;
    if head.status != 200 {
        return Err(refused("the stream", &head, &session.connection));
    }
    let (mut stream, read) = session.connection.into_stream();
    let mut events = EventCounter::default();
    events.feed(&read);
    let mut buffer = [0; BUFFER];
    while plan.target.era == LoadEra::New && events.counts().acknowledged == 0 {
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => events.feed(&buffer[..length]),
        }
    }
    Ok((stream, events))
}

async fn ask(connection: &mut HttpConnection, what: &str, request: &[u8]) -> io::Result<()> {
    let head = connection.exchange(request).await?;
    let failed = memchr::memmem::find(connection.body(), br#""error""#).is_some();
    if head.status == 200 && !failed { Ok(()) } else { Err(refused(what, &head, connection)) }
}

async fn connect(plan: &Plan) -> io::Result<HttpConnection> {
    let socket = if plan.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if plan.slow {
        socket.set_recv_buffer_size(SLOW_BUFFER)?;
    }
    if plan.address.is_ipv4() {
        socket.bind(SocketAddr::new(plan.source, 0))?;
    }
    let stream = socket.connect(plan.address).await?;
    stream.set_nodelay(true)?;
    Ok(HttpConnection::over(plan.address, stream))
}

/// Waits for the signal to read, then reads a stream to its end.
async fn follow(
    mut stream: TcpStream,
    mut events: EventCounter,
    held: Arc<StreamCounts>,
    mut read: watch::Receiver<bool>,
) {
    if read.wait_for(|read| *read).await.is_ok() {
        let mut buffer = [0; BUFFER];
        while !events.is_over() {
            let counts = events.counts();
            held.lists.store(counts.lists, Ordering::Relaxed);
            held.updates.store(counts.updates, Ordering::Relaxed);
            match stream.read(&mut buffer).await {
                Ok(length) if length > 0 => events.feed(&buffer[..length]),
                _ => break,
            }
        }
    }
    held.ended.store(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::{StreamCounts, count};

    #[test]
    fn the_count_tells_whether_all_were_told() {
        let held = [Arc::new(StreamCounts::default()), Arc::new(StreamCounts::default())];
        held[1].updates.store(3, Ordering::Relaxed);
        held[1].ended.store(1, Ordering::Relaxed);
        let expected =
            r#"count {"open":1,"lists":{"least":0,"most":0,"sum":0},"updates":{"least":0,"most":3,"sum":3}}"#;
        assert_eq!(count(&held), expected);
    }
}
