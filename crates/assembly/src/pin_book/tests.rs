use super::*;
use signalbox_engine::CapSet;

fn tool(description: &str) -> ToolDefinition {
    ToolDefinition::parse(format!(r#"{{"name":"a","description":"{description}"}}"#).as_bytes()).unwrap()
}

fn key() -> ViewKey {
    ViewKey::shared(Era::Modern, CapSet::bare())
}

fn locked(description: &str) -> String {
    let mut file = LockFile::default();
    file.backends.entry("one".to_owned()).or_default().approve_tool(&tool(description), Approval::new(1, "ada"));
    file.to_string()
}

#[test]
fn definitions_seen_first_are_remembered_by_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("signalbox.lock");
    let book = PinBook::open(&lock, folder.path()).unwrap();
    assert!(book.of("one", &key()).is_first);
    book.learn("one", &key(), &[tool("d")], Some("be kind"));
    for book in [book, PinBook::open(&lock, folder.path()).unwrap()] {
        let known = book.of("one", &key());
        assert!(
            !known.is_first && !known.is_locked && known.pins.approves(&tool("d")) && !known.pins.approves(&tool("e"))
        );
        assert!(book.of("two", &key()).is_first);
        let other_era = ViewKey::shared(Era::Legacy, CapSet::bare());
        assert!(book.of("one", &other_era).is_first, "a server may describe its tools to each era in another way");
    }
    std::fs::write(folder.path().join(SEEN), "version = 99").unwrap();
    assert!(PinBook::open(&lock, folder.path()).unwrap().of("one", &key()).is_first, "a damaged memory is begun anew");
}

#[test]
fn a_lock_file_is_followed_and_its_loss_approves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("signalbox.lock");
    let book = PinBook::open(&lock, folder.path()).unwrap();
    assert!(!book.has_news() && !book.follow());
    std::fs::write(&lock, locked("d")).unwrap();
    assert!(book.has_news() && book.follow() && !book.has_news());
    let approves = |description: &str| {
        let list = book.of("one", &key());
        assert!(list.is_locked && !list.is_first);
        list.pins.approves(&tool(description))
    };
    assert!(approves("d") && !approves("e"));
    std::fs::write(&lock, "nonsense").unwrap();
    assert!(!book.follow() && approves("d"));
    std::fs::remove_file(&lock).unwrap();
    assert!(!book.follow() && approves("d") && !approves("e"));
    std::fs::write(&lock, locked("e")).unwrap();
    assert!(book.follow() && approves("e") && !approves("d"));
}

#[test]
fn a_damaged_lock_file_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("signalbox.lock");
    std::fs::write(&lock, "version = 1\nx = 2\n").unwrap();
    let error = PinBook::open(&lock, folder.path()).err().unwrap().to_string();
    assert!(error.contains("signalbox.lock") && error.contains("line 2"), "{error}");
}
