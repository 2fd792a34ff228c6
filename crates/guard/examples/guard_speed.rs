//! Measures the time that cleaning and scoring take: `cargo run --release --example guard_speed -- FILE…`.
//!
//! Without a file it measures prose that is made here. It measures each file whole, and in pieces of 160 bytes, the size
//! of the text of a small call.

#![expect(clippy::print_stdout, reason = "a measuring program prints what it measures")]

use signalbox_guard::cleaning::{CleaningRules, clean};
use signalbox_guard::instructions::{InstructionScorer, NameSet, ScoreContext, TextLocation};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Size of the text that is measured, in bytes.
const SIZE: usize = 100_000;
/// Size of the pieces of a file.
const PIECE: usize = 160;
/// Number of runs, of which the fastest counts.
const RUNS: u32 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let scorer = InstructionScorer::new(None)?;
    println!("rules read in {:?}", start.elapsed());
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        let sentence =
            "The gateway reads each message once, checks it and passes it on; most of them are plain text.\n";
        let markdown = "See [the manual](https://example.org/manual) for `code`, **bold** text and <b>tags</b>.\n";
        report(&scorer, "prose", &sentence.repeat(SIZE / sentence.len()));
        report(&scorer, "markdown", &markdown.repeat(SIZE / markdown.len()));
    }
    for file in files {
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                report(&scorer, &file, &text);
                report_pieces(&scorer, &text);
            }
            Err(error) => println!("{file}: {error}"),
        }
    }
    Ok(())
}

/// Prints the time per 100 KB and the throughput.
fn report(scorer: &InstructionScorer, name: &str, text: &str) {
    let fastest = fastest(|| {
        black_box(clean(black_box(text), &CleaningRules::ALL));
    });
    let names = NameSet::new(["send_email", "read_file", "search"]);
    let context = ScoreContext { place: TextLocation::Result, own_tools: &|_| false, other_tools: &names };
    let scoring = self::fastest(|| {
        black_box(scorer.score(black_box(text), &context));
    });
    let seconds = fastest.as_secs_f64().max(1e-9);
    let bytes = text.len() as f64;
    let scale = 1e3 * SIZE as f64 / bytes;
    let scored = scoring.as_secs_f64() * scale;
    println!("{name}: cleaning {:.3} ms, scoring {scored:.3} ms per 100 KB", seconds * scale);
}

/// Prints the mean time of a piece of a text.
fn report_pieces(scorer: &InstructionScorer, text: &str) {
    let ascii: String = text.chars().filter(char::is_ascii).collect();
    let pieces: Vec<&str> = (0..ascii.len() / PIECE).map(|at| &ascii[at * PIECE..(at + 1) * PIECE]).collect();
    let names = NameSet::new(["send_email", "read_file", "search"]);
    let context = ScoreContext { place: TextLocation::Result, own_tools: &|_| false, other_tools: &names };
    let scoring = fastest(|| {
        for piece in &pieces {
            black_box(scorer.score(black_box(piece), &context));
        }
    });
    let mean = scoring.as_secs_f64() * 1e6 / pieces.len().max(1) as f64;
    println!("  {} pieces of {PIECE} bytes: scoring {mean:.2} µs each", pieces.len());
}

fn fastest(run: impl Fn()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..RUNS).map(time).min().unwrap_or_default()
}
