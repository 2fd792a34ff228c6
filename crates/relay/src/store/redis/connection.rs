//! Command connection to Redis, shared by all commands of a process.

use super::address::RedisAddress;
use crate::store::RelayStoreError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, FromRedisValue, RedisError, Script, ScriptInvocation};
use signalbox_engine::lock::LockResultExt as _;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Delay before the next attempt after a first failure. It doubles with each further one.
pub const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Maximum delay between attempts.
pub const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of characters of a Redis error code that are passed on.
const MAX_ERROR_CODE: usize = 32;

/// Counters of both connections.
#[derive(Debug, Default)]
pub struct RedisCounters {
    /// Commands and connection attempts that timed out.
    pub timeouts: AtomicU64,
    /// Commands and connection attempts that failed otherwise.
    pub failures: AtomicU64,
    /// Connections opened, of both kinds.
    pub connections: AtomicU64,
    /// Events read from the log after a connection was lost.
    pub caught_up: AtomicU64,
    /// Readers ended because they lagged behind or events were lost.
    pub let_go: AtomicU64,
}

impl RedisCounters {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Connection for commands, opened on demand.
pub struct RedisConnection {
    address: RedisAddress,
    script: Script,
    state: Mutex<State>,
    /// Held by the task that opens the connection.
    turn: tokio::sync::Mutex<()>,
    /// Failure of the event connection, if there is one.
    event_failure: Mutex<Option<RelayStoreError>>,
    pub counters: RedisCounters,
}

struct State {
    /// Current connection and its number, so that a failure of an older one does not close it.
    connection: Option<(MultiplexedConnection, u64)>,
    opened: u64,
    /// Last failure, and the time until which no new attempt is made.
    trouble: Option<(RelayStoreError, Instant)>,
    wait: Duration,
}

impl fmt::Debug for RedisConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RedisConnection {
    /// Creates a line to this address. Opens nothing yet.
    pub fn new(address: RedisAddress) -> Self {
        Self {
            address,
            script: Script::new(include_str!("relay.lua")),
            state: Mutex::new(State { connection: None, opened: 0, trouble: None, wait: FIRST_WAIT }),
            turn: tokio::sync::Mutex::default(),
            event_failure: Mutex::default(),
            counters: RedisCounters::default(),
        }
    }

    /// Returns the address of Redis.
    pub fn address(&self) -> &RedisAddress {
        &self.address
    }

    /// Prepares an action of the script. The caller adds its arguments.
    pub fn call(&self, act: &str, now: u64) -> ScriptInvocation<'_> {
        let mut call = self.script.prepare_invoke();
        call.arg(act).arg(self.address.prefix()).arg(now);
        call
    }

    /// Runs an action within the timeout. If the connection breaks, Redis may have executed it.
    pub async fn run<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, RelayStoreError> {
        self.attempt(call).await.map_err(|failure| failure.why)
    }

    /// Like [`RedisConnection::run`], but retries once if the connection breaks: for idempotent actions.
    pub async fn run_again<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, RelayStoreError> {
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
                RedisCounters::add(&self.counters.failures);
                let broken = error.is_unrecoverable_error() || matches!(error.code(), Some("READONLY" | "MASTERDOWN"));
                let why = store_error(&error);
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

    fn too_late(&self) -> RelayStoreError {
        RedisCounters::add(&self.counters.timeouts);
        RelayStoreError::Unreachable(format!("Redis did not answer within {} s", self.address.timeout().as_secs_f64()))
    }

    /// Returns the connection, opening one if necessary. During a back-off, it returns the last failure at once.
    async fn connection(&self) -> Result<(MultiplexedConnection, u64), RelayStoreError> {
        if let Some(connected) = self.ready()? {
            return Ok(connected);
        }
        let _turn = self.turn.lock().await;
        if let Some(connected) = self.ready()? {
            return Ok(connected);
        }
        // The sender of each command awaits its reply.
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

    /// Opens a connection with this configuration.
    pub async fn open(&self, config: &AsyncConnectionConfig) -> Result<MultiplexedConnection, RelayStoreError> {
        let client = self.address.client().await?;
        let opened = client.get_multiplexed_async_connection_with_config(config).await;
        RedisCounters::add(match &opened {
            Ok(_) => &self.counters.connections,
            Err(error) if error.is_timeout() => &self.counters.timeouts,
            Err(_) => &self.counters.failures,
        });
        opened.map_err(|error| store_error(&error))
    }

    /// Returns the timeout of a connection attempt. It is short because other commands wait meanwhile.
    pub fn connect_timeout(&self) -> Duration {
        self.address.timeout() * 2 / 5
    }

    fn ready(&self) -> Result<Option<(MultiplexedConnection, u64)>, RelayStoreError> {
        let state = self.state.lock().unpoisoned();
        match (&state.connection, &state.trouble) {
            (Some(connected), _) => Ok(Some(connected.clone())),
            (None, Some((error, until))) if Instant::now() < *until => Err(error.clone()),
            (None, _) => Ok(None),
        }
    }

    /// Drops a broken connection. With `why`, the next attempt is delayed, so that a hanging server is not tried again
    /// at once.
    fn lost(&self, number: u64, why: Option<RelayStoreError>) {
        let mut state = self.state.lock().unpoisoned();
        if state.connection.as_ref().is_some_and(|(_, current)| *current == number) {
            state.connection = None;
            if let Some(why) = why {
                state.fail(why);
            }
        }
    }

    /// Sets or clears the failure of the event connection.
    pub fn set_event_failure(&self, why: Option<RelayStoreError>) {
        *self.event_failure.lock().unpoisoned() = why;
    }

    /// Returns the reason why Redis is unusable, if it is.
    pub fn trouble(&self) -> Option<RelayStoreError> {
        let own = {
            let state = self.state.lock().unpoisoned();
            state.trouble.as_ref().map(|(error, _)| error.clone())
        };
        own.or_else(|| self.event_failure.lock().unpoisoned().clone())
    }
}

impl State {
    fn fail(&mut self, why: RelayStoreError) {
        self.trouble = Some((why, Instant::now() + self.wait));
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }
}

/// Failure of a command.
struct Failure {
    why: RelayStoreError,
    /// True if the connection broke, so that a new one may succeed.
    broken: bool,
}

impl From<RelayStoreError> for Failure {
    fn from(why: RelayStoreError) -> Self {
        Self { why, broken: false }
    }
}

/// Converts an error of Redis. Its text may repeat the arguments of a command, which contain codes, so only the kind is
/// passed on.
pub fn store_error(error: &RedisError) -> RelayStoreError {
    match error.kind() {
        ErrorKind::UnexpectedReturnType | ErrorKind::Parse => {
            RelayStoreError::Unreadable("Redis answers in another form".to_owned())
        }
        ErrorKind::Io => RelayStoreError::Unreachable(error.to_string()),
        _ => {
            let code: String = error.code().unwrap_or_default().chars().take(MAX_ERROR_CODE).collect();
            let text = format!("Redis refuses: {} {code}", error.category());
            match code.as_str() {
                "WRONGTYPE" => RelayStoreError::Unreadable(text),
                _ => RelayStoreError::Unreachable(text.trim_end().to_owned()),
            }
        }
    }
}
