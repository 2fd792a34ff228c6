//! docs/messages.md says what the table of messages says, and the table knows every phase.

use signalbox_engine::chain::Phase;
use signalbox_engine::message_table::{MESSAGES, markdown};

#[test]
fn the_documentation_shows_the_table_of_messages() {
    let shown = include_str!("../../../docs/messages.md");
    assert!(shown.contains(&markdown()), "docs/messages.md must hold this table:\n{}", markdown());
}

#[test]
fn every_phase_is_in_the_table_and_what_is_not_judged_cannot_be_refused() {
    for phase in Phase::ALL {
        assert!(MESSAGES.iter().any(|row| row.judged == Some(phase) && row.refusable), "{phase:?}");
    }
    assert!(MESSAGES.iter().all(|row| row.judged.is_some() || !row.refusable));
}
