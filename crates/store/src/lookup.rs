//! Finds the tape for an id, a prefix of one, or `last`.

use signalbox_engine::record::StoreError;

/// The word for the newest tape.
pub const LAST: &str = "last";

/// How many tapes are looked at to tell that a beginning is ambiguous, and to name them.
pub const SHOWN: usize = 5;

/// Chooses among the tapes whose name begins with what was asked for, the newest first; all of them for `last`.
pub fn choose(asked: &str, found: Vec<String>) -> Result<String, StoreError> {
    let exact = found.iter().position(|id| id == asked);
    let several = found.len() > 1 && asked != LAST && !asked.is_empty() && exact.is_none();
    if several {
        let more = if found.len() >= SHOWN { ", …" } else { "" };
        let shown = found.join(", ");
        return Err(StoreError::Query(format!(
            "several tapes begin with `{asked}`: {shown}{more}; give more of the id"
        )));
    }
    let place = exact.unwrap_or(0);
    let id = if asked.is_empty() { None } else { found.into_iter().nth(place) };
    id.ok_or_else(|| StoreError::NoTape(asked.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_whole_by_its_beginning_or_as_the_last() {
        let found = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(choose("ab", found(&["abc"])), Ok("abc".into()));
        assert_eq!(choose("ab", found(&["abc", "ab"])), Ok("ab".into()));
        assert_eq!(choose("last", found(&["z", "y"])), Ok("z".into()));
        assert_eq!(choose("x", found(&[])), Err(StoreError::NoTape("x".into())));
        assert_eq!(choose("", found(&["a"])), Err(StoreError::NoTape(String::new())));
        let several = choose("a", found(&["ab", "ac"])).unwrap_err();
        assert_eq!(several.to_string(), "several tapes begin with `a`: ab, ac; give more of the id");
    }
}
