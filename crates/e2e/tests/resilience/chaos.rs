//! A storm over the real gateway: backends are killed, stopped and made to misbehave while clients of every kind call.
//!
//! `MCP_TEST_CHAOS_SECONDS` is its length, 12 by default. `MCP_TEST_CHAOS_SEED` repeats what was struck and when; by
//! default the seed is always the same. `script/prove chaos` takes longer and another seed each time.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use signalbox_testkit::chaos;
use std::time::Duration;

/// The seed where none is given.
const SEED: u64 = 20_260_728;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_gets_one_right_answer_or_a_clear_error_and_nothing_is_left_behind() {
    let seconds = number("MCP_TEST_CHAOS_SECONDS").unwrap_or(12);
    let seed = number("MCP_TEST_CHAOS_SEED").unwrap_or(SEED);
    println!("chaos: MCP_TEST_CHAOS_SEED={seed} MCP_TEST_CHAOS_SECONDS={seconds}");
    match chaos::run(seed, Duration::from_secs(seconds)).await {
        Ok(account) => println!("{account}"),
        Err(error) => panic!("{error:#}"),
    }
}
