//! The program as a process.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Nothing here takes longer than this unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a finished program left.
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program in this folder, with its state in `data` below it and nothing of the user's own settings.
pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox"));
    command.args(args).current_dir(folder).kill_on_drop(true);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SIGNALBOX_")) {
        command.env_remove(name);
    }
    command.env("SIGNALBOX_DATA_DIR", folder.join("data")).env("XDG_CONFIG_HOME", folder.join("none"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub async fn run(folder: &Path, args: &[&str], input: &str) -> Done {
    let mut child = command(folder, args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that reads nothing may end before it is written to.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let done = timeout(PATIENCE, child.wait_with_output()).await.expect("the program to end").unwrap();
    Done {
        code: done.status.code().unwrap_or(-1),
        stdout: String::from_utf8(done.stdout).unwrap(),
        stderr: String::from_utf8(done.stderr).unwrap(),
    }
}

/// A running program.
pub struct Program {
    child: Child,
    pid: u32,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    errors: Arc<Mutex<String>>,
}

impl Program {
    pub fn start(folder: &Path, args: &[&str]) -> Self {
        let mut child = command(folder, args).spawn().unwrap();
        let errors = Arc::new(Mutex::new(String::new()));
        let (mut stderr, kept) = (child.stderr.take().unwrap(), Arc::clone(&errors));
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        });
        Self {
            pid: child.id().unwrap(),
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            errors,
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn stderr(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    pub async fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn line(&mut self) -> String {
        timeout(PATIENCE, self.output.next_line()).await.expect("a line in time").unwrap().expect("a line")
    }

    /// The answer to the request of this id, whatever notifications come before it.
    pub async fn answer(&mut self, id: u64) -> String {
        loop {
            let line = self.line().await;
            let message: serde_json::Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message["method"].is_null() {
                return line;
            }
        }
    }

    /// Where the banner says that clients connect.
    pub async fn url(&self) -> String {
        eventually(async || {
            let text = self.stderr();
            let (_, rest) = text.split_once(" serves MCP at ")?;
            rest.split_once('\n').map(|(url, _)| url.to_owned())
        })
        .await
    }

    pub async fn signal(&self, name: &str) {
        signal(self.pid, name).await;
    }

    pub async fn ended(&mut self) -> Option<i32> {
        timeout(PATIENCE, self.child.wait()).await.expect("the program to end").unwrap().code()
    }
}

/// Sends a process a signal.
pub async fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().await.unwrap();
    assert!(sent.success());
}

/// Asks again and again until there is an answer.
pub async fn eventually<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, asking).await.expect("it to happen in time")
}

/// The whole answer to a plain GET.
pub async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer in time").unwrap();
    answer
}
