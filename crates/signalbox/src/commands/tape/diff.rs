//! `signalbox tape diff`: compares two tapes.

use super::{diff_report, keys, read_tape};
use crate::cli::{DiffArgs, Global};
use crate::failure::Failure;
use crate::output;
use signalbox_replay::diff::Comparison;
use signalbox_replay::tape_diff::{self, TapeDiffSettings, TimingBudget};
use std::process::ExitCode;

/// Compares the tapes. Every failure exits with 2, because 1 means that the tapes differ.
pub(super) fn run(global: &Global, args: &DiffArgs) -> Result<ExitCode, Failure> {
    compare(global, args).map_err(|failure| Failure::Usage(failure.to_string()))
}

fn compare(global: &Global, args: &DiffArgs) -> Result<ExitCode, Failure> {
    let settings = settings(args)?;
    let (mut old, mut new) = (read_tape(global, &args.old, "tape diff")?, read_tape(global, &args.new, "tape diff")?);
    let mut decryptor = keys::decryptor(&args.key_file)?;
    let found = tape_diff::diff(&mut old, &mut new, &settings, decryptor.as_mut())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    keys::tell(decryptor.as_ref());
    let text = if global.json {
        format!("{}\n", diff_report::as_json(old.info(), new.info(), &found))
    } else {
        diff_report::as_text(old.info(), new.info(), &found)
    };
    output::in_form(global.json, &text)?;
    let differs = if args.breaking { found.is_breaking() } else { !found.is_same() };
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn settings(args: &DiffArgs) -> Result<TapeDiffSettings, Failure> {
    let (ignored, unordered) = args.places.read()?;
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(TapeDiffSettings {
        comparison: Comparison {
            ignored: ignored.paths,
            patterns: ignored.patterns,
            unordered,
            tolerance: args.tolerance.unwrap_or_default(),
            json_in_text: !args.exact_text,
            meta: args.meta,
        },
        methods: args.method.clone(),
        tool: args.tool.clone(),
        sessions: [args.session.map(|session| session.0), args.session.map(|session| session.1)],
        timing: args.timing.map(|time| TimingBudget { budget: nanos(time), factor: args.timing_factor }),
        any_order: args.any_order,
        limit: args.limit,
    })
}
