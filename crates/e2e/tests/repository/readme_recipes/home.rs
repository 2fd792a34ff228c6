//! An empty home, with the programs that the recipes assume on the PATH.

use serde_json::{Value, json};
use signalbox_testkit::http_client::browse;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::{Spawned, built};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;
use tokio::task::JoinHandle;

/// Maximum time of one command, and of anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Home {
    folder: tempfile::TempDir,
    work: PathBuf,
    /// Names that the reader is told to replace.
    replaced: Vec<(String, String)>,
    /// Address by which `serve` listens where its file does not say.
    listen: Option<String>,
    gateway: Option<Spawned>,
}

impl Home {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(built("signalbox").unwrap(), bin.join("signalbox")).unwrap();
        // A server with the demo tools, in a folder without a configuration.
        let server = "#!/bin/sh\ncd \"$(dirname \"$0\")\" && exec ./signalbox stdio --data-dir ../server-data\n";
        script(&bin.join("my-server"), server);
        script(&bin.join("editor"), "#!/bin/sh\nsed -i s/hello/edited/ \"$1\"\n");
        let home = folder.path().display().to_string();
        let free = || free_address().unwrap().port().to_string();
        let replaced = vec![("/home/me".to_owned(), home), ("9000".to_owned(), free())];
        let work = folder.path().to_owned();
        Self { folder, work, replaced, listen: Some("127.0.0.1:0".to_owned()), gateway: None }
    }

    /// Goes on in another folder of the home.
    pub fn in_folder(&mut self, name: &str) {
        self.work = self.folder.path().join(name);
        std::fs::create_dir(&self.work).unwrap();
    }

    /// Has the reader write something else for a name.
    pub fn replace(&mut self, name: &str, other: &str) {
        self.replaced.push((name.to_owned(), other.to_owned()));
    }

    /// Has `serve` listen as its file says, with free ports in place of these.
    pub fn serve_with_own_address(&mut self, ports: &[&str]) {
        self.listen = None;
        for port in ports {
            self.replace(port, &free_address().unwrap().port().to_string());
        }
    }

    fn meant(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (name, other)| text.replace(name, other))
    }

    pub fn write_home(&self, file: &str, text: &str) {
        let file = self.folder.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// Appends to a file of the folder, which is made.
    pub fn append(&self, file: &str, text: &str) {
        let path = self.work.join(file);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, format!("{before}{}\n", self.meant(text))).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.work.join(file)).unwrap()
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        let path = std::env::var("PATH").unwrap_or_default();
        let home = self.folder.path();
        command.args(["-c", &self.meant(line)]).current_dir(&self.work).env_clear();
        command.env("PATH", format!("{}:{path}", home.join("bin").display()));
        command.env("HOME", home).env("EDITOR", "editor");
        if let Some(listen) = &self.listen {
            command.env("SIGNALBOX_LISTEN", listen);
        }
        command.kill_on_drop(true);
        command
    }

    /// Runs a command that has to succeed, and returns what it prints. What serves goes on in the background.
    pub async fn run(&mut self, line: &str) -> String {
        if line.starts_with("signalbox serve") {
            self.serve(line).await;
            return String::new();
        }
        if line.starts_with("signalbox replay serve") {
            self.replay(line).await;
            return String::new();
        }
        if line.starts_with("signalbox login") {
            self.sign_in(line).await;
            return String::new();
        }
        let (succeeded, text) = self.begin(line).await.unwrap();
        assert!(succeeded, "$ {line}\n{text}");
        text
    }

    /// Starts a command. Returns whether it succeeded, and what it printed.
    pub fn begin(&self, line: &str) -> JoinHandle<(bool, String)> {
        let mut command = self.shell(line);
        tokio::spawn(async move {
            let done = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
            let text = [done.stdout, done.stderr].concat();
            (done.status.success(), String::from_utf8_lossy(&text).into_owned())
        })
    }

    /// Runs a command again and again until it prints this.
    pub async fn until(&mut self, line: &str, part: &str) {
        let mut last = String::new();
        for _ in 0..300 {
            last = self.begin(line).await.unwrap().1;
            if last.contains(part) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("$ {line}\n{last}");
    }

    async fn serve(&mut self, line: &str) {
        self.gateway = Some(Spawned::start(self.shell(&format!("exec {line}"))).unwrap());
        self.until("signalbox status", "serve (pid").await;
    }

    /// Ends the gateway as a person does.
    pub async fn stop(&mut self) {
        let mut gateway = self.gateway.take().expect("a gateway runs");
        let pid = gateway.pid().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
        assert!(gateway.wait(PATIENCE).await.unwrap().success(), "{:?}", gateway.error_lines());
    }

    /// Lets a tape answer as a server until it has answered.
    async fn replay(&mut self, line: &str) {
        let mut server = Spawned::start(self.shell(&format!("exec {line}"))).unwrap();
        let address = self.meant(line.split("--listen ").nth(1).unwrap().split(' ').next().unwrap());
        self.until(&format!("signalbox tools call echo text=hello --url http://{address}/mcp"), "hello\n").await;
        server.kill().await.unwrap();
    }

    /// Opens the address that is printed, as a browser does.
    async fn sign_in(&mut self, line: &str) {
        let mut login = Spawned::start(self.shell(&format!("exec {line}"))).unwrap();
        let printed = login.wait_line("  http://", PATIENCE).await.unwrap();
        assert_eq!(browse(printed.trim()).await.unwrap(), 200);
        assert!(login.wait(PATIENCE).await.unwrap().success(), "{:?}", login.error_lines());
    }

    /// Starts the one server of a client's file, as the client would, and greets it.
    pub async fn client_entry(&self, file: &str) {
        let file: Value = serde_json::from_str(&self.meant(file)).unwrap();
        let servers = file["mcpServers"].as_object().unwrap();
        let entry = servers.values().next().unwrap();
        let words = entry["args"].as_array().unwrap().iter().filter_map(Value::as_str);
        let line = std::iter::once(entry["command"].as_str().unwrap()).chain(words).collect::<Vec<_>>().join(" ");
        let mut client = Spawned::start(self.shell(&format!("exec {line}"))).unwrap();
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        client.write_line(&hello.to_string()).await.unwrap();
        client.wait_line(r#"{"jsonrpc":"2.0","id":1,"result":"#, PATIENCE).await.unwrap();
    }
}

fn script(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}
