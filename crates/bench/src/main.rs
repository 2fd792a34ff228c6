//! Benchmarks: an echo backend, a bare forwarder as baseline, a load client, and reports of their numbers.
//!
//! `script/bench` drives all of it; each part also runs alone.

#![allow(clippy::print_stdout, reason = "a bench prints its addresses, numbers and tables to stdout")]

mod aims;
mod answer;
mod args;
mod echo;
mod echo_workers;
mod events;
mod flat;
mod forward;
mod gauge;
mod hold;
mod http_connection;
mod latency_histogram;
mod load;
mod outcome;
mod pace;
mod page_text;
mod pipe_server;
mod places;
mod plan;
mod process;
mod rates;
mod record;
mod replayed;
mod report;
mod request;
mod results;
mod scan;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

use answer::{Echo, Eras};
use args::Args;

const USAGE: &str = "\
usage: signalbox-bench COMMAND
  echo      --listen ADDR [--era both|old|new] [--tools N] [--mute] [--workers N]
                          an MCP echo server over Streamable HTTP, under any path; `--tools` are listed, of which the
                          first is `echo` unless it is mute
  echo      --stdio [--era both|old|new] [--tools N] [--mute]
                          the same over lines on stdin and stdout
  forward   --listen ADDR --upstream http://ADDR [--workers N]
                          a bare HTTP forwarder, the yardstick
  load      --url http://ADDR/mcp | --command 'PROGRAM ARGUMENT...'
            [--connections 16] [--payload 256] [--seconds 2] [--warmup 0.3] [--era old|new] [--tool NAME]
            [--max-calls N] [--rate N] [--one-session] [--pages FOLDER] [--pid PID]...
                          closed-loop load, one JSON line of numbers; with `--pages` each call has another piece of the
                          Markdown files there as its text; `--command` is a stdio server, spoken to directly
                          with so many calls under way at a time; `--pid` is measured, and what it started apart from it
  hold      --url http://ADDR/mcp [--sessions N] [--streams N] [--era old|new] [--follow URI] [--source IP]
            [--used] [--slow]
                          opens sessions that hold no connection (`--used`: after one call each), and event streams, of
                          sessions or of listen requests; says `held` and then answers `count` on stdin with what each
                          stream got; `--slow` streams are not read before the order `read`; ends when stdin does
  report    FILE          lines of `NAME BACKEND ROUND JSON` as Markdown tables, and whether the aims are met
  flat      FILE [--no-time]
                          the same lines, and lines of `NAME instructions ERA COUNT`, as a table beside the set-up `base`
  rates     FILE SHARE    the same lines: calls per second beside the set-up `base`, and whether each has that share of its rate
  record    FILE          the same lines: the set-up `recorded` beside `plain`, and whether S-65 is met
  replayed  FILE          the same lines: the set-up `tape` beside `live`, and whether it is as fast
  places    --url http://ADDR/mcp --command 'PROGRAM ARGUMENT...' --of CALLS [--calls 10000] [--tool echo]
            [--most-ms 1000] [--most-kb N]
                          starts a program that plays a tape of so many calls (with the argument `n` from 0 on, answered by `answer 0.` and so on),
                          makes the first one, the last one and others all over it, and tells times and peak memory
  free-port               a loopback port that is free now";

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
            let args = Args::parse(words, &["listen", "era", "workers", "tools"], &["stdio", "mute"])?;
            let server = Echo::new(args.or("era", Eras::Both)?, args.or("tools", 1)?, args.has("mute"));
            if args.has("stdio") {
                echo::run_stdio(&server)?;
            } else {
                echo::run(&args, server)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        "forward" => {
            let args = Args::parse(words, &["listen", "upstream", "workers"], &[])?;
            forward::run(&args)?;
            Ok(ExitCode::SUCCESS)
        }
        "load" => load::run(&Args::parse(words, plan::FLAGS, plan::SWITCHES)?),
        "hold" => hold::run(&Args::parse(words, hold::FLAGS, hold::SWITCHES)?),
        "report" => report::run(words),
        "flat" => flat::run(words),
        "rates" => rates::run(words),
        "record" => record::run(words),
        "replayed" => replayed::run(words),
        "places" => places::run(&Args::parse(words, places::FLAGS, &[])?),
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
