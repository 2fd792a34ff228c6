//! Command line of `signalbox backtest`.

use clap::Args;
use std::path::PathBuf;

/// Text below the help of `signalbox backtest`.
pub const BACKTEST_HELP: &str = "\
Recorded requests and times are fixed; what limiters and caches remember is computed anew, and what webhooks and persons
answered comes from the tape. A verdict that depends on something the tape does not have is `unknown`.

Classes: blocked, allowed, changed, differently, unchanged, held, delayed, answered, unknown. docs/backtest.md explains them.

Exit codes: 0 nothing of --fail-on was found, 1 something was, 2 usage or configuration.

Examples:
  signalbox backtest last -c new.toml
  signalbox backtest last --rules rules.toml --fail-on blocked,unknown
  signalbox backtest last --guard -c strict.toml
  signalbox backtest monday.tape tuesday.tape --examples 10 --json";

/// Arguments of the command `backtest`.
#[derive(Debug, Clone, Args)]
pub struct BacktestArgs {
    /// Tapes: files, or tapes of the store (`last` is the newest)
    #[arg(required = true, value_name = "TAPE")]
    pub tapes: Vec<String>,
    /// Files of rules to try [default: the rules of the configuration]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub rules: Vec<PathBuf>,
    /// Try the guard of the configuration instead of its rules
    #[arg(long, conflicts_with = "rules")]
    pub guard: bool,
    /// Number of examples to show of each group
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub examples: usize,
    /// Exit with 1 if there is anything of these classes; `any` means every difference
    #[arg(long, value_name = "CLASSES", value_delimiter = ',', default_value = "any")]
    pub fail_on: Vec<String>,
}
