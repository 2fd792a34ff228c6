//! Child processes that end with the test that started them.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

/// How many lines of standard error an error message quotes.
const QUOTED: usize = 20;

/// A running child process whose output is kept line by line; dropping it kills the process.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    input: Option<ChildStdin>,
    output: Arc<Captured>,
    errors: Arc<Captured>,
}

impl Spawned {
    /// Starts the command, with all three of its streams in our hands.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        command.kill_on_drop(true);
        let program = command.as_std().get_program().to_owned();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let (output, errors) = (Captured::new(), Captured::new());
        if let Some(stream) = child.stdout.take() {
            tokio::spawn(capture(stream, output.clone()));
        }
        if let Some(stream) = child.stderr.take() {
            tokio::spawn(capture(stream, errors.clone()));
        }
        let input = child.stdin.take();
        Ok(Self { child, input, output, errors })
    }

    /// The number of the process, as long as its end was not waited for.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Writes one line to standard input.
    ///
    /// # Errors
    /// When standard input is closed, here or there.
    pub async fn write_line(&mut self, line: &str) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("standard input was closed before")?;
        input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(input.flush().await?)
    }

    /// Closes standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The first line of standard output that begins so; waits for it if it is not there yet.
    ///
    /// # Errors
    /// When the time is up, or the output ends without such a line. The message quotes standard error.
    pub async fn wait_line(&self, prefix: &str, patience: Duration) -> anyhow::Result<String> {
        let found = tokio::time::timeout(patience, self.output.find(prefix)).await;
        match found {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(anyhow!("the output ended without a line {prefix:?}\n{}", self.quote())),
            Err(_) => Err(anyhow!("no line {prefix:?} in {patience:?}\n{}", self.quote())),
        }
    }

    /// The lines of standard output so far.
    pub fn lines(&self) -> Vec<String> {
        self.output.all()
    }

    /// The lines of standard error so far.
    pub fn error_lines(&self) -> Vec<String> {
        self.errors.all()
    }

    /// Waits until the process ends by itself.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn wait(&mut self, patience: Duration) -> anyhow::Result<ExitStatus> {
        match tokio::time::timeout(patience, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => bail!("still running after {patience:?}\n{}", self.quote()),
        }
    }

    /// Kills the process and waits until it is gone.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    fn quote(&self) -> String {
        let errors = self.errors.all();
        let tail = errors.len().saturating_sub(QUOTED);
        format!("standard error:\n{}", errors[tail..].join("\n"))
    }
}

/// The path of a binary of this workspace, built before the test that asks: it lies beside the test's own.
///
/// # Errors
/// When it is not there.
pub fn built(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let mut places = own.ancestors().skip(1).take(2).map(|dir| dir.join(&file));
    places
        .find(|path| path.is_file())
        .with_context(|| format!("{name} is not built; run `cargo build --workspace --bins` before this test"))
}

/// The lines of one stream, and a way to wait for more.
#[derive(Debug)]
struct Captured {
    lines: Mutex<Vec<String>>,
    /// Whether the stream ended; touched at every line.
    ended: watch::Sender<bool>,
}

impl Captured {
    fn new() -> Arc<Self> {
        Arc::new(Self { lines: Mutex::default(), ended: watch::Sender::new(false) })
    }

    fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, line: String) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        self.ended.send_modify(|_| {});
    }

    async fn find(&self, prefix: &str) -> Option<String> {
        let mut news = self.ended.subscribe();
        loop {
            let ended = *news.borrow_and_update();
            let found = self.all().into_iter().find(|line| line.starts_with(prefix));
            if found.is_some() || ended {
                return found;
            }
            news.changed().await.ok()?;
        }
    }
}

async fn capture(stream: impl AsyncRead + Unpin, captured: Arc<Captured>) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        captured.push(line);
    }
    captured.ended.send_replace(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Spawned {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Spawned::start(command).unwrap()
    }

    #[tokio::test]
    async fn a_line_is_found_before_and_after_it_came() {
        let child = shell("echo one; echo two 2; sleep 60");
        assert_eq!(child.wait_line("two", SOON).await.unwrap(), "two 2");
        assert_eq!(child.wait_line("one", SOON).await.unwrap(), "one");
    }

    #[tokio::test]
    async fn an_end_without_the_line_tells_why() {
        let child = shell("echo broken >&2");
        let error = child.wait_line("ready", SOON).await.unwrap_err();
        assert!(error.to_string().contains("without a line"));
    }

    #[tokio::test]
    async fn patience_ends() {
        let child = shell("sleep 60");
        let error = child.wait_line("ready", Duration::from_millis(50)).await;
        assert!(error.unwrap_err().to_string().contains("no line"));
    }

    #[tokio::test]
    async fn a_dropped_child_is_gone() {
        let child = shell("echo up; sleep 60");
        child.wait_line("up", SOON).await.unwrap();
        let proc = PathBuf::from(format!("/proc/{}", child.pid().unwrap()));
        drop(child);
        for _ in 0..200 {
            let state = std::fs::read_to_string(proc.join("stat")).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the child lives on");
    }
}
