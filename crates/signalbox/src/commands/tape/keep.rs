//! `signalbox tape keep`: has a running gateway write its ring buffer to the tape.

use crate::cli::{Global, Which};
use crate::commands::{administration, processes};
use crate::failure::Failure;
use crate::output;
use http::Method;
use signalbox_control::api::routes::KEEP;
use signalbox_control::table;
use std::process::ExitCode;

/// Sends the request, and prints the result.
pub(super) fn run(global: &Global, which: &Which) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Start)?;
    let kept = runtime.block_on(async {
        let process = processes::governing(global, which).await?;
        process.send(Method::POST, KEEP, None).await
    });
    let kept = administration::tried_alone(global, ("tape.keep", ""), kept)?;
    if global.json {
        output::json(&kept)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tape = table::harmless(kept["tape"].as_str().unwrap_or("-"));
    output::result(&format!("wrote {} entries of the ring to tape {tape}\n", kept["entries"]))?;
    Ok(ExitCode::SUCCESS)
}
