//! The bench: an echo backend, a bare forwarder as yardstick, a load client and the table made of their numbers.
//!
//! `script/bench` drives all of it; each part also runs alone.

#![allow(clippy::print_stdout, reason = "a bench prints its addresses, numbers and tables to stdout")]

mod answer;
mod args;
mod connection;
mod echo;
mod forward;
mod histogram;
mod load;
mod process;
mod report;
mod request;
mod scan;
mod stdio;
mod workers;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

use args::Args;

const USAGE: &str = "\
usage: signalbox-bench COMMAND
  echo      --listen ADDR [--era both|old|new] [--workers N]   an MCP echo server over Streamable HTTP
  echo      --stdio [--era both|old|new]                       the same over lines on stdin and stdout
  forward   --listen ADDR --upstream http://ADDR [--workers N] a bare HTTP forwarder, the yardstick
  load      --url http://ADDR/mcp [--connections 16] [--payload 256] [--seconds 2] [--warmup 0.3]
            [--era old|new] [--tool NAME] [--max-calls N] [--pid PID]...
                                                               closed-loop load, one JSON line of numbers
  report    FILE                                               lines of `NAME ROUND JSON` as a Markdown table
  free-port                                                    a loopback port that is free now";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    match run(&command, words) {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            eprintln!("signalbox-bench: {error}\n{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("signalbox-bench {command}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    match command {
        "echo" => {
            let args = Args::parse(words, &["listen", "era", "workers"], &["stdio"])?;
            let eras = args.or("era", answer::Eras::Both)?;
            if args.has("stdio") {
                stdio::run(eras)?;
            } else {
                echo::run(&args, eras)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        "forward" => {
            let args = Args::parse(words, &["listen", "upstream", "workers"], &[])?;
            forward::run(&args)?;
            Ok(ExitCode::SUCCESS)
        }
        "load" => load::run(&Args::parse(words, load::FLAGS, &[])?),
        "report" => report::run(words),
        "free-port" => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            println!("{}", listener.local_addr()?.port());
            Ok(ExitCode::SUCCESS)
        }
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(args::usage(format!("no command '{command}'"))),
    }
}
