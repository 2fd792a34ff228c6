//! Local users by the command line.

use crate::program::run;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test]
async fn users_are_added_listed_given_another_password_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let none = run(here, &["users", "list"], "").await;
    assert!(none.code == 0 && none.stdout.contains("there is no user"), "{}", none.stdout);
    let added = run(here, &["users", "add", "ada"], "a made-up password\n").await;
    assert_eq!((added.code, added.stdout.as_str()), (0, ""), "{}", added.stderr);
    let file = here.join("data/auth/users.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("$argon2id$") && !text.contains("made-up"), "{text}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let again = run(here, &["users", "add", "ada"], "another made-up password\n").await;
    assert!(again.code != 0 && again.stderr.contains("--replace"), "{}", again.stderr);
    let replaced = run(here, &["users", "add", "ada", "--replace"], "another made-up password\n").await;
    assert_eq!(replaced.code, 0, "{}", replaced.stderr);
    assert_ne!(std::fs::read_to_string(&file).unwrap(), text);
    for (name, password, told) in
        [("eve", "short", "at least 8 characters"), ("e v e", "long enough", "letters, digits")]
    {
        let refused = run(here, &["users", "add", name], password).await;
        assert!(refused.code != 0 && refused.stderr.contains(told), "{}", refused.stderr);
    }
    let listed: Value = serde_json::from_str(&run(here, &["users", "list", "--json"], "").await.stdout).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["principal"]), (1, &Value::from("user:ada")));
    let grants = here.join("data/auth/grants.json");
    let grant = json!([{"id": "0a", "to": "user:ada", "tools": ["files/*"], "until": 4_102_444_800_000_u64,
        "because": "a test", "by": "local:root", "since": 1}]);
    std::fs::write(&grants, grant.to_string()).unwrap();
    let removed = run(here, &["users", "remove", "ada"], "").await;
    assert!(removed.code == 0 && removed.stderr.contains("took away the grants of user:ada"), "{}", removed.stderr);
    assert!(!std::fs::read_to_string(&grants).unwrap().contains("user:ada"), "the next Ada has none of it");
    let gone = run(here, &["users", "remove", "ada"], "").await;
    assert!(gone.code != 0 && gone.stderr.contains("there is no user"), "{}", gone.stderr);
}
