//! Measures hostile schemas: time to compile and to check, and peak memory, each case in a process of its own.
//!
//! `cargo run --release -p signalbox-guard --example hostile_schemas`
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program that prints a table")]

#[path = "../tests/support/hostile_cases.rs"]
mod hostile_cases;

use hostile_cases::hostile_cases;
use signalbox_guard::schema::{Schema, SchemaValidity};
use std::io::Write;
use std::process::{Command, Stdio};

fn main() {
    match std::env::args().nth(1) {
        Some(name) => measure(&name, &read_texts()),
        None => {
            println!("{:44} {:>9} {:>9}  verdicts", "case", "compile", "memory");
            let program = std::env::current_exe().expect("the program knows its path");
            for case in hostile_cases() {
                let mut command = Command::new(&program);
                let mut child = command.arg(case.name).stdin(Stdio::piped()).spawn().expect("the program runs itself");
                let texts = std::iter::once(&case.schema).chain(&case.instances).map(|text| format!("{text}\n"));
                let mut input = child.stdin.take().expect("the input is a pipe");
                texts.for_each(|text| input.write_all(text.as_bytes()).expect("the program reads its input"));
                drop(input);
                let status = child.wait().expect("the program ends");
                if !status.success() {
                    println!("{:44} FAILED: {status}", case.name);
                }
            }
        }
    }
}

/// Reads the schema and the instances, one on each line. Making them here would leave free memory behind.
fn read_texts() -> Vec<String> {
    std::io::stdin().lines().map(|line| line.expect("the texts are UTF-8")).collect()
}

/// Prints one row: processor time, and the growth of the resident memory at its peak.
fn measure(name: &str, texts: &[String]) {
    let Some((schema, instances)) = texts.split_first() else { return };
    // The first schema in a process sets up the metaschemas of the library.
    let _ = Schema::compile(b"{}");
    // Linux: the peak begins anew.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (memory, start) = (peak_kib(), processor_ms());
    let compiled = Schema::compile(schema.as_bytes());
    let compile = processor_ms() - start;
    let verdicts = match &compiled {
        Err(error) => error.to_string(),
        Ok(schema) => instances.iter().map(|text| verdict(schema, text)).collect::<Vec<_>>().join(", "),
    };
    let memory = (peak_kib() - memory) as f64 / 1024.0;
    println!("{:44} {compile:6.1} ms {memory:6.1} MB  {verdicts}", name);
}

/// Checks an instance. Returns the verdict with its time.
fn verdict(schema: &Schema, text: &str) -> String {
    let start = processor_ms();
    let verdict = schema.check(text.as_bytes());
    let time = processor_ms() - start;
    let verdict = match verdict {
        SchemaValidity::Valid => "valid".to_owned(),
        SchemaValidity::Coercible(coercions) => format!("{} coercible", coercions.len()),
        SchemaValidity::Invalid(violations) => format!("{} violations", violations.len()),
        SchemaValidity::TooCostly => "too costly".to_owned(),
    };
    format!("{verdict} in {time:.1} ms")
}

/// Returns the processor time of this thread in milliseconds, which other programs do not change, or zero where the
/// system does not say.
fn processor_ms() -> f64 {
    // The scheduler brings its count up to date when the thread gives way.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or_default() / 1e6
}

/// Returns the peak of the resident memory, or zero where the system does not say.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or_default()
}
