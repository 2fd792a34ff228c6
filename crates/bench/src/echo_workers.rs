//! One single-threaded runtime per core, with connections assigned in turn.
//!
//! A connection never changes its thread and wakes no other one. For small calls this measured cheaper than a
//! work-stealing runtime.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream as StdStream};
use std::thread;

use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// Maximum number of accepted connections that wait for their worker.
const BACKLOG: usize = 256;

/// Bound listener with the number of threads to serve it.
#[derive(Debug)]
pub struct EchoWorkers {
    listener: TcpListener,
    count: usize,
}

impl EchoWorkers {
    /// Binds `address`. Without `count` there is one worker per core.
    pub fn bind(address: SocketAddr, count: Option<usize>) -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { listener: TcpListener::bind(address)?, count: count.unwrap_or(cores).max(1) })
    }

    /// Returns the bound address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends. Each thread calls `worker` once, and the returned function handles that thread's
    /// connections.
    pub fn serve<W, C>(self, worker: W) -> io::Result<()>
    where
        W: Fn() -> C + Clone + Send + 'static,
        C: Fn(TcpStream) + 'static,
    {
        let mut queues = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let (sender, receiver) = mpsc::channel(BACKLOG);
            let worker = worker.clone();
            thread::spawn(move || work(&worker(), receiver));
            queues.push(sender);
        }
        for queue in queues.iter().cycle() {
            let (stream, _) = self.listener.accept()?;
            if queue.blocking_send(stream).is_err() {
                return Err(io::Error::other("a worker thread ended"));
            }
        }
        Ok(())
    }
}

fn work<C: Fn(TcpStream)>(connect: &C, mut streams: mpsc::Receiver<StdStream>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        while let Some(stream) = streams.recv().await {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            connect(TcpStream::from_std(stream)?);
        }
        Ok(())
    })
}
