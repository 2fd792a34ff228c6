//! `signalbox relay`: helps clients move from the legacy API to MCP.

use crate::cli::{MigrateArgs, RelayCommand};
use crate::failure::Failure;
use crate::output;
use signalbox_relay::migrate::{LegacyCall, TargetFlavor};
use std::io::Read as _;
use std::process::ExitCode;

/// Maximum length of a call read from standard input, in bytes.
const MAX_CALL: u64 = 16 << 20;

pub(super) fn run(command: RelayCommand) -> Result<ExitCode, Failure> {
    match command {
        RelayCommand::Migrate(args) => migrate(args),
    }
}

fn migrate(args: MigrateArgs) -> Result<ExitCode, Failure> {
    let style = if args.stateless { TargetFlavor::Stateless } else { TargetFlavor::Sessions };
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let call = if args.call.is_empty() {
        let mut text = String::new();
        std::io::stdin().take(MAX_CALL).read_to_string(&mut text).map_err(|error| usage(&error))?;
        LegacyCall::of_json(&text)
    } else {
        LegacyCall::of_curl(args.call)
    };
    let told = call.and_then(|call| call.to_mcp(style)).map_err(|error| usage(&error))?;
    output::exact(&told)?;
    Ok(ExitCode::SUCCESS)
}
