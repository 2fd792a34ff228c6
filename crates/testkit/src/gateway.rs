//! The real `signalbox` binary as tests start it: with a config of its own, a data folder of its own, on a free port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::http_client::HttpClient;
use crate::ports::free_address;
use crate::process::{Spawned, built};
use crate::scene::signal;
use crate::used_secrets;

/// How long a gateway may take to listen.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running `signalbox serve`; dropping it kills the process.
pub struct GatewayProcess {
    /// The process.
    pub process: Spawned,
    address: SocketAddr,
    /// Taken when the process has ended and another one goes on with it.
    folder: Option<tempfile::TempDir>,
    data_dir: PathBuf,
    config_file: PathBuf,
}

impl Drop for GatewayProcess {
    /// No test leaves a credential behind that it used.
    fn drop(&mut self) {
        let left = used_secrets::left_in(&self.data_dir, &self.process.error_lines());
        assert!(left.is_empty() || std::thread::panicking(), "the gateway kept credentials: {left:#?}");
    }
}

impl GatewayProcess {
    /// Starts `signalbox serve` with this config and waits until it listens.
    ///
    /// # Errors
    /// If the binary is not built, or does not listen in time.
    pub async fn serve(config: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        Self::serve_in(folder, config).await
    }

    /// The same, with a data folder that outlived another gateway.
    ///
    /// # Errors
    /// If the binary is not built, or does not listen in time.
    pub async fn serve_in(folder: tempfile::TempDir, config: &str) -> anyhow::Result<Self> {
        Self::serve_at(free_address()?, folder, config).await
    }

    /// The same, at this address.
    ///
    /// # Errors
    /// If the binary is not built, or does not listen in time.
    pub async fn serve_at(address: SocketAddr, folder: tempfile::TempDir, config: &str) -> anyhow::Result<Self> {
        let gateway = Self::start(address, folder, config)?;
        gateway.within_patience(gateway.listening()).await?;
        Ok(gateway)
    }

    /// The same, where the system lets it have so many open files.
    ///
    /// # Errors
    /// If the binary is not built, or does not listen in time.
    pub async fn serve_with_files(files: u32, config: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (file, data_dir) = (folder.path().join("signalbox.toml"), folder.path().join("data"));
        std::fs::write(&file, config)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]).arg(built("signalbox")?);
        let mut gateway = Self::spawn(shell, free_address()?, file, data_dir)?;
        gateway.folder = Some(folder);
        gateway.within_patience(gateway.listening()).await?;
        Ok(gateway)
    }

    /// Starts one that speaks no HTTP and waits until it listens.
    ///
    /// # Errors
    /// If the binary is not built, or does not listen in time.
    pub async fn serve_tcp(config: &str) -> anyhow::Result<Self> {
        let gateway = Self::start(free_address()?, tempfile::tempdir()?, config)?;
        let listening = async {
            while TcpStream::connect(gateway.address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        gateway.within_patience(listening).await?;
        Ok(gateway)
    }

    /// Starts another one with the configuration and the data folder of this one, which has to outlive it.
    ///
    /// # Errors
    /// If the binary is not built, or does not listen in time.
    pub async fn serve_beside(&self) -> anyhow::Result<Self> {
        let program = Command::new(built("signalbox")?);
        let gateway = Self::spawn(program, free_address()?, self.config_file(), self.data_dir())?;
        gateway.within_patience(gateway.listening()).await?;
        Ok(gateway)
    }

    fn start(address: SocketAddr, folder: tempfile::TempDir, config: &str) -> anyhow::Result<Self> {
        let file = folder.path().join("signalbox.toml");
        std::fs::write(&file, config)?;
        let program = Command::new(built("signalbox")?);
        let mut gateway = Self::spawn(program, address, file, folder.path().join("data"))?;
        gateway.folder = Some(folder);
        Ok(gateway)
    }

    fn spawn(
        mut command: Command,
        address: SocketAddr,
        config_file: PathBuf,
        data_dir: PathBuf,
    ) -> anyhow::Result<Self> {
        command.args(["serve", "--listen", &address.to_string()]);
        command.arg("-c").arg(&config_file).arg("--data-dir").arg(&data_dir);
        Ok(Self { process: Spawned::start(command)?, address, folder: None, data_dir, config_file })
    }

    async fn within_patience(&self, listening: impl Future<Output = ()>) -> anyhow::Result<()> {
        let waited = tokio::time::timeout(PATIENCE, listening).await;
        waited.with_context(|| format!("the gateway does not listen:\n{}", self.process.error_lines().join("\n")))
    }

    async fn listening(&self) {
        while HttpClient::new(self.address).get("/healthz").await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a backend serves.
    ///
    /// # Errors
    /// When none does in time.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let waiting = async {
            loop {
                if HttpClient::new(self.address).get("/readyz").await.is_ok_and(|answer| answer.status == 200) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.context("no backend is ready")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Its data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone()
    }

    /// Its configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config_file.clone()
    }

    /// Ends the process by SIGTERM, as a service manager does, and gives its folder back.
    ///
    /// # Errors
    /// When the process does not end in time.
    pub async fn terminate(mut self) -> anyhow::Result<tempfile::TempDir> {
        signal(self.process.pid().context("it has ended before")?, "TERM").await?;
        self.process.wait(PATIENCE).await?;
        self.folder.take().context("the folder was taken before")
    }

    /// Ends the process and gives its folder back.
    ///
    /// # Errors
    /// When the process cannot be ended.
    pub async fn stop(mut self) -> anyhow::Result<tempfile::TempDir> {
        self.process.kill().await?;
        self.folder.take().context("the folder was taken before")
    }
}

/// A command line for `signalbox stdio` with this config, for clients that start servers themselves.
///
/// # Errors
/// When the binary is not built or the config cannot be written.
pub fn stdio_command(folder: &Path, config: &str) -> anyhow::Result<Vec<String>> {
    let file = folder.join("signalbox.toml");
    std::fs::write(&file, config)?;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    Ok(vec![
        path(&built("signalbox")?),
        "stdio".to_owned(),
        "-c".to_owned(),
        path(&file),
        "--data-dir".to_owned(),
        path(&folder.join("data")),
    ])
}
