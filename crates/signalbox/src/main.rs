//! Entry point: parses the command line, runs the command, reports its failure.

use clap::Parser as _;
use signalbox::cli::Cli;
use signalbox::intent::{self, InferredLine};
use signalbox::{commands, output};
use std::process::ExitCode;

/// Each call makes some forty small allocations, which mimalloc serves in a third of the time; see
/// `docs/performance.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (line, hint) = match intent::infer(std::env::args_os().collect(), &intent::look, intent::is_piped()) {
        InferredLine::Line(line) => (line, None),
        InferredLine::Unclear { line, hint } => (line, hint),
    };
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            if let Some(hint) = hint {
                output::say(format_args!("\nhint: {hint}"));
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => {
            output::complain(&failure);
            failure.exit_code()
        }
    }
}
