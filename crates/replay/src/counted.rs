//! Formats a count with its noun.

/// Returns a count with its noun: `1 call`, `2 calls`.
#[must_use]
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
