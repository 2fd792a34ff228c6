use super::conn::Conn;
use signalbox_engine::lock::LockResultExt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Id};

/// Idle connections of one backend. The most recently used one is reused first, so that surplus ones age out. A
/// connection is reused only in the runtime that opened it, which watches its socket; another runtime would have to be
/// woken for every byte. With one runtime per thread, a connection therefore stays on its thread.
pub(crate) struct Pool {
    max_idle: usize,
    idle_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Idle>,
    /// Set while a task is running that closes connections which were idle for too long.
    reaping: bool,
}

struct Idle {
    runtime: Id,
    conn: Box<Conn>,
    until: Instant,
}

impl State {
    fn pop(&mut self, runtime: Id) -> Option<Idle> {
        let newest = self.idle.iter().rposition(|idle| idle.runtime == runtime)?;
        Some(self.idle.remove(newest))
    }
}

impl Pool {
    pub(crate) fn new(max_idle: usize, idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { max_idle, idle_timeout, state: Mutex::default() })
    }

    /// Takes a connection that was open when last used. [`Conn::send`] checks that it still is before it writes.
    pub(crate) fn take(&self) -> Option<Box<Conn>> {
        let (now, here) = (Instant::now(), Handle::current().id());
        loop {
            let idle = self.lock().pop(here)?;
            if idle.until > now {
                return Some(idle.conn);
            }
        }
    }

    /// Keeps a connection whose last response was read completely, if it can be reused.
    pub(crate) fn put(self: &Arc<Self>, mut conn: Box<Conn>) {
        if !conn.is_idle() {
            return;
        }
        conn.prepare_idle();
        let until = Instant::now() + conn.idle_time(self.idle_timeout);
        let mut state = self.lock();
        if state.idle.len() >= self.max_idle {
            return;
        }
        state.idle.push(Idle { runtime: Handle::current().id(), conn, until });
        if !state.reaping {
            state.reaping = true;
            tokio::spawn(reap(Arc::downgrade(self), self.idle_timeout));
        }
    }

    /// Closes connections that were idle for too long. Returns `false` if none is left.
    fn reap(&self) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        let old: Vec<Idle> = state.idle.extract_if(.., |idle| idle.until <= now).collect();
        let more = !state.idle.is_empty();
        state.reaping = more;
        // Closing sockets takes a while, so the lock is released first.
        drop(state);
        drop(old);
        more
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.lock().idle.len()
    }
}

/// Closes idle connections in time. Nothing reads from an idle connection, so one that the server closed would
/// otherwise stay half open.
async fn reap(pool: Weak<Pool>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match pool.upgrade() {
            Some(pool) if pool.reap() => {}
            _ => return,
        }
    }
}
