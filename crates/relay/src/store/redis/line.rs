//! The connection that commands go by. All commands of a process share it.

use super::address::RedisAddress;
use crate::store::StoreError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, FromRedisValue, RedisError, Script, ScriptInvocation};
use signalbox_engine::lock::LockResultExt as _;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long nothing is tried after a first failure. It doubles with each further one.
pub const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest time for which nothing is tried.
pub const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The characters of what Redis calls an error that are passed on.
const MAX_ERROR_CODE: usize = 32;

/// What is counted.
#[derive(Debug, Default)]
pub struct Counters {
    /// Commands without an answer in time, and connections that were not made in time.
    pub timeouts: AtomicU64,
    /// Commands that failed otherwise.
    pub failures: AtomicU64,
    /// Connections that were made, of both kinds.
    pub connections: AtomicU64,
    /// Events that were read again after a connection was lost.
    pub caught_up: AtomicU64,
    /// Readers that were let go because they were too far behind, or events were lost.
    pub let_go: AtomicU64,
}

impl Counters {
    /// Adds one.
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The connection, which is opened when it is needed.
pub struct Line {
    address: RedisAddress,
    script: Script,
    state: Mutex<State>,
    /// Whoever has it opens the connection.
    turn: tokio::sync::Mutex<()>,
    /// What is wrong with the other connection, by which events come.
    deaf: Mutex<Option<StoreError>>,
    /// What is counted.
    pub counters: Counters,
}

struct State {
    /// With a number, so that a later one is not taken for it.
    connection: Option<(MultiplexedConnection, u64)>,
    opened: u64,
    /// Why there is none, and until when no other is tried.
    trouble: Option<(StoreError, Instant)>,
    wait: Duration,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Line {
    /// A line to this address. Nothing is opened yet.
    pub fn new(address: RedisAddress) -> Self {
        Self {
            address,
            script: Script::new(include_str!("relay.lua")),
            state: Mutex::new(State { connection: None, opened: 0, trouble: None, wait: FIRST_WAIT }),
            turn: tokio::sync::Mutex::default(),
            deaf: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// Where it leads.
    pub fn address(&self) -> &RedisAddress {
        &self.address
    }

    /// One of the acts of the script; what it needs is added by the caller.
    pub fn call(&self, act: &str, now: u64) -> ScriptInvocation<'_> {
        let mut call = self.script.prepare_invoke();
        call.arg(act).arg(self.address.prefix()).arg(now);
        call
    }

    /// Has Redis do it, in time. A connection that breaks meanwhile may have carried it out.
    pub async fn run<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, StoreError> {
        self.attempt(call).await.map_err(|failure| failure.why)
    }

    /// The same, once more if the connection breaks: for what may be done twice.
    pub async fn run_again<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, StoreError> {
        match self.attempt(call).await {
            Err(failure) if failure.broken => self.attempt(call).await.map_err(|failure| failure.why),
            done => done.map_err(|failure| failure.why),
        }
    }

    async fn attempt<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, Failure> {
        let deadline = Instant::now() + self.address.timeout();
        let (mut connection, number) = match timeout_at(deadline, self.connection()).await {
            Ok(connected) => connected?,
            Err(_) => return Err(self.too_late().into()),
        };
        match timeout_at(deadline, call.invoke_async(&mut connection)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                Counters::add(&self.counters.failures);
                let broken = error.is_unrecoverable_error() || matches!(error.code(), Some("READONLY" | "MASTERDOWN"));
                let why = told(&error);
                if broken {
                    self.lost(number, None);
                }
                Err(Failure { why, broken })
            }
            Err(_) => {
                let why = self.too_late();
                self.lost(number, Some(why.clone()));
                Err(why.into())
            }
        }
    }

    fn too_late(&self) -> StoreError {
        Counters::add(&self.counters.timeouts);
        StoreError::Unreachable(format!("Redis did not answer within {} s", self.address.timeout().as_secs_f64()))
    }

    /// The connection, or a new one. While nothing is tried the reason is known at once.
    async fn connection(&self) -> Result<(MultiplexedConnection, u64), StoreError> {
        if let Some(connected) = self.ready()? {
            return Ok(connected);
        }
        let _turn = self.turn.lock().await;
        if let Some(connected) = self.ready()? {
            return Ok(connected);
        }
        // Answers are waited for by whoever sends a command.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout()))
            .set_response_timeout(None);
        let opened = self.open(&config).await;
        let mut state = self.state.lock().unpoisoned();
        match opened {
            Ok(connection) => {
                state.opened += 1;
                state.connection = Some((connection.clone(), state.opened));
                (state.trouble, state.wait) = (None, FIRST_WAIT);
                Ok((connection, state.opened))
            }
            Err(error) => {
                state.fail(error.clone());
                Err(error)
            }
        }
    }

    /// Opens a connection of its own kind.
    pub async fn open(&self, config: &AsyncConnectionConfig) -> Result<MultiplexedConnection, StoreError> {
        let client = self.address.client().await?;
        let opened = client.get_multiplexed_async_connection_with_config(config).await;
        Counters::add(match &opened {
            Ok(_) => &self.counters.connections,
            Err(error) if error.is_timeout() => &self.counters.timeouts,
            Err(_) => &self.counters.failures,
        });
        opened.map_err(|error| told(&error))
    }

    /// How long a connection may take: other commands wait for it meanwhile.
    pub fn connect_timeout(&self) -> Duration {
        self.address.timeout() * 2 / 5
    }

    fn ready(&self) -> Result<Option<(MultiplexedConnection, u64)>, StoreError> {
        let state = self.state.lock().unpoisoned();
        match (&state.connection, &state.trouble) {
            (Some(connected), _) => Ok(Some(connected.clone())),
            (None, Some((error, until))) if Instant::now() < *until => Err(error.clone()),
            (None, _) => Ok(None),
        }
    }

    /// A connection is of no use any more. One that hangs is not tried again at once.
    fn lost(&self, number: u64, why: Option<StoreError>) {
        let mut state = self.state.lock().unpoisoned();
        if state.connection.as_ref().is_some_and(|(_, current)| *current == number) {
            state.connection = None;
            if let Some(why) = why {
                state.fail(why);
            }
        }
    }

    /// Notes what is wrong with the connection by which events come, if anything is.
    pub fn set_deaf(&self, why: Option<StoreError>) {
        *self.deaf.lock().unpoisoned() = why;
    }

    /// Why Redis cannot be used, if it cannot.
    pub fn trouble(&self) -> Option<StoreError> {
        let own = {
            let state = self.state.lock().unpoisoned();
            state.trouble.as_ref().map(|(error, _)| error.clone())
        };
        own.or_else(|| self.deaf.lock().unpoisoned().clone())
    }
}

impl State {
    fn fail(&mut self, why: StoreError) {
        self.trouble = Some((why, Instant::now() + self.wait));
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }
}

/// Why a command has no answer.
struct Failure {
    why: StoreError,
    /// The connection broke, so that another one may do better.
    broken: bool,
}

impl From<StoreError> for Failure {
    fn from(why: StoreError) -> Self {
        Self { why, broken: false }
    }
}

/// An error in our words. What Redis says of a command may repeat its arguments, and those hold codes: only the kind is passed on.
pub fn told(error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::UnexpectedReturnType | ErrorKind::Parse => {
            StoreError::Unreadable("Redis answers in another form".to_owned())
        }
        ErrorKind::Io => StoreError::Unreachable(error.to_string()),
        _ => {
            let code: String = error.code().unwrap_or_default().chars().take(MAX_ERROR_CODE).collect();
            let text = format!("Redis refuses: {} {code}", error.category());
            match code.as_str() {
                "WRONGTYPE" => StoreError::Unreadable(text),
                _ => StoreError::Unreachable(text.trim_end().to_owned()),
            }
        }
    }
}
