//! The misbehaving server on standard input and output.

use std::io::Write as _;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::Server;
use super::speech::SpeechStep;

/// Lines that a server says to nobody in particular when it is told to say garbage.
const GARBAGE: &[u8] = b"Traceback (most recent call last):\n\x00\xff\xfe{\"jsonrpc\":\n[]\n{}\nnull\n";
/// How many lines a flood has on standard error.
const CHATTER: usize = 1000;

/// Serves until the input ends.
///
/// # Errors
/// When standard output is gone.
pub async fn serve(server: Arc<Server>) -> anyhow::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let Ok(message) = serde_json::from_str(&line) else { continue };
        let steps = server.steps(&message);
        if steps.is_empty() {
            continue;
        }
        tokio::spawn(async move {
            if steps.len() > CHATTER / 2 {
                chatter();
            }
            for step in steps {
                if take(step).await.is_err() {
                    end(1);
                }
            }
        });
    }
    Ok(())
}

async fn take(step: SpeechStep) -> std::io::Result<()> {
    match step {
        SpeechStep::Say(message) | SpeechStep::Refuse(message) => write(format!("{message}\n").as_bytes()),
        SpeechStep::Garbage => write(GARBAGE),
        SpeechStep::Half(message) => {
            let whole = message.to_string();
            write(&whole.as_bytes()[..whole.len() / 2])?;
            end(1)
        }
        SpeechStep::End => end(0),
        SpeechStep::Reset => std::process::abort(),
        SpeechStep::Wait(time) => {
            tokio::time::sleep(time).await;
            Ok(())
        }
    }
}

/// Ends the process as it stands.
#[expect(clippy::disallowed_methods, reason = "this server is here to end in the middle of things")]
fn end(code: i32) -> ! {
    std::process::exit(code)
}

/// Writes at once and as a whole; a reader that does not read holds this process up, as it would any.
fn write(bytes: &[u8]) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

fn chatter() {
    let mut errors = std::io::stderr().lock();
    for line in 0..CHATTER {
        let _ = writeln!(errors, "line {line} of a flood that nobody wants to read");
    }
}
