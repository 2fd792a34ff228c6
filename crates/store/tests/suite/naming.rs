//! Tapes and sessions by name.

use crate::house::House;
use crate::make::{entry, keep, request, tape};
use signalbox_engine::record::{Content, SessionInfo, StoreError};

pub fn a_tape_is_named_whole_by_a_beginning_or_as_the_last(house: &House) {
    let store = house.open();
    assert_eq!(store.tape("last"), Err(StoreError::NoTape("last".into())), "there is none at all");
    for (id, started) in [("ab1", 30), ("ab2", 50), ("ab", 40), ("c%_", 10), ("cx", 20)] {
        store.begin(&tape(id, started)).unwrap();
    }
    let named = |asked: &str| store.tape(asked).map(|tape| tape.id);
    assert_eq!(named("ab1"), Ok("ab1".into()));
    assert_eq!(named("ab"), Ok("ab".into()), "a whole name counts before a beginning");
    assert_eq!(named("last"), Ok("ab2".into()));
    assert_eq!(named("c%"), Ok("c%_".into()), "no pattern");
    assert_eq!(named("_"), Err(StoreError::NoTape("_".into())));
    assert_eq!(named(""), Err(StoreError::NoTape(String::new())));
    assert_eq!(named("zz").unwrap_err().to_string(), "no tape zz; see `signalbox tape list`");
    let several = named("a").unwrap_err().to_string();
    assert_eq!(several, "several tapes begin with `a`: ab2, ab, ab1; give more of the id");
    for error in [
        store.sessions("zz").map(|_| ()).unwrap_err(),
        store.remove("zz").unwrap_err(),
        store.stats(Some("zz")).map(|_| ()).unwrap_err(),
    ] {
        assert_eq!(error, StoreError::NoTape("zz".into()));
    }
    let again = store.begin(&tape("ab1", 1)).map(|_| ()).unwrap_err();
    assert_eq!(again.to_string(), "tape ab1 already exists");
}

pub fn tapes_are_listed_newest_first_with_their_number_of_entries(house: &House) {
    let store = house.open();
    keep(&*store, "old", &[request(1, "{}")]);
    let mut writer = store.begin(&tape("young", u64::MAX >> 1)).unwrap();
    writer.append(&[request(1, "{}"), request(2, "{}")], false).unwrap();
    let listed: Vec<_> =
        store.tapes().unwrap().into_iter().map(|(tape, count)| (tape.id, tape.ended.is_some(), count)).collect();
    assert_eq!(listed, [("young".to_owned(), false, 2), ("old".to_owned(), true, 1)]);
}

pub fn sessions_are_known_by_what_was_said_last(house: &House) {
    let store = house.open();
    let first = SessionInfo { transport: "http".into(), ..SessionInfo::default() };
    let later = SessionInfo { client: Some("inspector".into()), external: Some("x".into()), ..first.clone() };
    let mut begun = entry(1, Content::Session(first.clone()));
    let mut known = entry(2, Content::Session(later.clone()));
    (begun.session, known.session) = (Some(7), Some(7));
    let mut other = entry(3, Content::Session(first.clone()));
    other.session = Some(2);
    let mut ended = entry(4, Content::SessionEnded);
    ended.session = Some(7);
    keep(&*store, "t", &[begun, known, other, ended]);
    keep(&*store, "u", &[]);
    assert_eq!(store.sessions("t").unwrap(), [(2, first), (7, later)]);
    assert_eq!(store.sessions("u").unwrap(), []);
}
