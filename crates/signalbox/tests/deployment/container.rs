//! The `Dockerfile`, as far as it can be judged without a container engine.

use crate::{assert_command_line, assert_variable, read, root};

/// The instructions, each on one line.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').expect("an instruction and what it is about");
            (word.to_owned(), rest.trim().to_owned())
        })
        .collect()
}

fn all(word: &str) -> Vec<String> {
    instructions().into_iter().filter(|(known, _)| known == word).map(|(_, rest)| rest).collect()
}

/// The one instruction of this kind in its JSON form, which needs no shell.
fn words(word: &str) -> Vec<String> {
    let text = all(word).pop().unwrap_or_else(|| panic!("no {word}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{word} {text}: {error}"))
}

/// True if `.dockerignore` lets a path of the repository into the build.
fn is_sent(path: &str) -> bool {
    let mut sent = true;
    for line in read(".dockerignore").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (pattern, wanted) = line.strip_prefix('!').map_or((line, false), |pattern| (pattern, true));
        let fits = pattern == "*" || path == pattern || path.starts_with(&format!("{pattern}/"));
        if fits {
            sent = wanted;
        }
    }
    sent
}

/// Proves NO-13.
#[test]
fn everything_that_is_copied_is_there() {
    let stages: Vec<String> =
        all("FROM").iter().filter_map(|from| Some(from.split_once(" AS ")?.1.to_owned())).collect();
    let made = all("RUN").join("\n");
    let mut from_repository = 0;
    for copy in all("COPY") {
        let (flags, paths): (Vec<&str>, Vec<&str>) = copy.split_whitespace().partition(|word| word.starts_with("--"));
        let (_, sources) = paths.split_last().unwrap();
        match flags.iter().find_map(|flag| flag.strip_prefix("--from=")) {
            Some(stage) => {
                assert!(stages.iter().any(|known| known == stage), "{copy}: no stage `{stage}`");
                assert!(sources.iter().all(|source| made.contains(source)), "{copy}: nothing makes this");
            }
            None => {
                for source in sources {
                    assert!(root().join(source).exists() && is_sent(source), "{copy}: {source} is not there");
                    from_repository += 1;
                }
            }
        }
    }
    assert!(from_repository >= 3, "only {from_repository} sources");
    // Whatever cargo reads of a crate is sent too.
    assert!(is_sent("crates/wire/benches/wire.rs") && !is_sent("target") && !is_sent(".git"));
}

/// Proves NO-13.
#[test]
fn what_runs_in_the_container_is_a_command_line_of_ours_without_a_shell() {
    let entry = words("ENTRYPOINT");
    let whole: Vec<String> = entry.iter().cloned().chain(words("CMD")).collect();
    assert_command_line(whole.iter().map(String::as_str), "CMD");
    let check = all("HEALTHCHECK").pop().expect("a health check");
    let (_, command) = check.split_once("CMD ").expect("a command");
    let command: Vec<String> = serde_json::from_str(command).unwrap();
    assert_command_line(command.iter().map(String::as_str), "HEALTHCHECK");
    assert_eq!(command[0], entry[0]);
    let installed = all("COPY").into_iter().any(|copy| copy.ends_with(&entry[0]));
    assert!(installed, "{} is not copied", entry[0]);
}

#[test]
fn the_user_owns_the_data_folder_and_is_not_root() {
    let user = all("USER").pop().expect("a user");
    assert!(!user.starts_with('0') && !user.starts_with("root"), "{user}");
    let volume = all("VOLUME").pop().expect("a volume");
    let owned = format!("--chown={user}");
    assert!(all("COPY").iter().any(|copy| copy.contains(&owned) && copy.ends_with(&volume)), "{volume}");
    let variables = all("ENV").join(" ");
    assert!(variables.contains(&format!("SIGNALBOX_DATA_DIR={volume}")), "{variables}");
    variables.split_whitespace().filter_map(|pair| pair.split_once('=')).for_each(|(name, _)| {
        assert_variable(name, "ENV");
    });
}

#[test]
fn the_features_named_exist() {
    let manifest = read("crates/signalbox/Cargo.toml");
    let features: toml::Table = manifest.parse().unwrap();
    assert!(features["features"].as_table().unwrap().contains_key("otel"));
    assert!(read("Dockerfile").contains("FEATURES=otel"));
}
