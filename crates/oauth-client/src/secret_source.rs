//! Sources of configured secrets.

use crate::secret_text::SecretText;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// Maximum size of a secret, in bytes.
const MAX_SECRET: u64 = 64 * 1024;
/// Timeout of a program that prints a secret.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// Source of a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretSource {
    Env(String),
    /// File; a trailing line break is removed.
    File(PathBuf),
    /// Program with arguments that prints it. No shell is involved.
    Command(Vec<String>),
}

/// Error when a secret cannot be read. It repeats neither the secret nor the output of a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("the file {} cannot be read: {}", .0.display(), .1)]
    File(PathBuf, std::io::ErrorKind),
    /// The program cannot be started.
    #[error("the program `{0}` cannot be run: {1}")]
    Start(String, std::io::ErrorKind),
    #[error("the program `{0}` failed")]
    Failed(String),
    /// The program timed out.
    #[error("the program `{0}` printed nothing within {time} s", time = COMMAND_TIME.as_secs())]
    Slow(String),
    /// The secret is empty, too large, or not a single line of text.
    #[error("{0} holds no secret of one line")]
    Empty(String),
}

impl SecretSource {
    /// Reads the secret.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub async fn read(&self) -> Result<SecretText, SecretError> {
        let bytes = match self {
            Self::Env(name) => std::env::var(name).map_err(|_| SecretError::Unset(name.clone()))?.into_bytes(),
            Self::File(path) => {
                let bad = |error: std::io::Error| SecretError::File(path.clone(), error.kind());
                let file = tokio::fs::File::open(path).await.map_err(bad)?;
                let mut bytes = Vec::new();
                file.take(MAX_SECRET + 1).read_to_end(&mut bytes).await.map_err(bad)?;
                bytes
            }
            Self::Command(line) => printed(line).await?,
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
        if text.is_empty() || text.len() as u64 > MAX_SECRET || text.chars().any(char::is_control) {
            return Err(SecretError::Empty(self.place()));
        }
        Ok(SecretText::new(text))
    }

    /// Describes the source in messages.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Env(name) => format!("the environment variable `{name}`"),
            Self::File(path) => format!("the file {}", path.display()),
            Self::Command(line) => format!("the output of `{}`", line.first().map_or("", String::as_str)),
        }
    }
}

async fn printed(line: &[String]) -> Result<Vec<u8>, SecretError> {
    let Some((program, arguments)) = line.split_first() else { return Ok(Vec::new()) };
    let start = |error: std::io::Error| SecretError::Start(program.clone(), error.kind());
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(start)?;
    let Some(stdout) = child.stdout.take() else { return Ok(Vec::new()) };
    let running = async {
        let mut bytes = Vec::new();
        stdout.take(MAX_SECRET + 1).read_to_end(&mut bytes).await.map_err(start)?;
        let status = child.wait().await.map_err(start)?;
        if status.success() { Ok(bytes) } else { Err(SecretError::Failed(program.clone())) }
    };
    tokio::time::timeout(COMMAND_TIME, running).await.unwrap_or_else(|_| Err(SecretError::Slow(program.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &[&str]) -> SecretSource {
        SecretSource::Command(line.iter().map(|word| (*word).to_owned()).collect())
    }

    #[tokio::test]
    async fn secrets_come_from_files_and_programs_and_never_from_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "abc\r\n").unwrap();
        assert_eq!(SecretSource::File(path.clone()).read().await.unwrap().expose(), "abc");
        std::fs::write(&path, "two\nlines\n").unwrap();
        assert!(matches!(SecretSource::File(path).read().await, Err(SecretError::Empty(_))));
        assert_eq!(command(&["printf", "%s", "$HOME;id"]).read().await.unwrap().expose(), "$HOME;id");
        assert_eq!(command(&["false"]).read().await, Err(SecretError::Failed("false".to_owned())));
        assert!(matches!(command(&["/nonexistent"]).read().await, Err(SecretError::Start(..))));
        assert!(matches!(SecretSource::Env("SIGNALBOX_NO_SUCH".to_owned()).read().await, Err(SecretError::Unset(_))));
    }
}
