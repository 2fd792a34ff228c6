//! Infers the command of a command line that names none: a server to wrap, an address, a port or a tape.

use crate::cli::Cli;
use clap::CommandFactory as _;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Kind of a word, according to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// Neither a file nor a program.
    Nothing,
    /// A file that is not a program.
    File,
    /// A program, here or on PATH.
    Program,
}

/// Completed command line, or a hint to show after clap's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InferredLine {
    /// Command line with an explicit command.
    Line(Vec<OsString>),
    /// The command cannot be inferred.
    Unclear {
        /// Command line as the user typed it.
        line: Vec<OsString>,
        /// Suggestion for the user.
        hint: Option<String>,
    },
}

/// Infers the command. `line` begins with the name of the program, and a known command always wins. A tape is shown on
/// a terminal, and served to a client at the other end of a pipe.
#[must_use]
pub fn infer(line: Vec<OsString>, look: &dyn Fn(&OsStr) -> WordKind, piped: bool) -> InferredLine {
    let Some(place) = first_word(&line) else { return InferredLine::Line(line) };
    let Some(word) = line[place].to_str() else { return InferredLine::Unclear { line, hint: None } };
    if is_command(word) {
        return InferredLine::Line(line);
    }
    let alone = place + 1 == line.len();
    let insert = |words: &[&str]| {
        let mut full = line.clone();
        full.splice(place..place, words.iter().map(OsString::from));
        InferredLine::Line(full)
    };
    let lower = word.to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return insert(&["proxy"]);
    }
    if word.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok()) {
        let mut full = line.clone();
        full[place] = format!("--listen=127.0.0.1{word}").into();
        full.insert(place, "serve".into());
        return InferredLine::Line(full);
    }
    if lower.ends_with(".tape") && is_command("tape") {
        return insert(if piped { &["replay", "serve"] } else { &["tape", "show"] });
    }
    let found = look(&line[place]);
    let unclear = |hint: String| InferredLine::Unclear { line: line.clone(), hint: Some(hint) };
    match (ending(word), found) {
        (_, WordKind::Nothing) if word.contains('/') => unclear(format!("there is no file {word}")),
        (_, WordKind::Nothing) => InferredLine::Unclear { line, hint: None },
        ("js" | "mjs" | "cjs", _) => insert(&["wrap", "--", "node"]),
        ("py", _) => insert(&["wrap", "--", "python3"]),
        ("ts" | "mts", _) => unclear(format!(
            "{word} is TypeScript; name what runs it, as in `signalbox wrap -- npx tsx {word}`, or compile it"
        )),
        (_, WordKind::Program) if !alone || word.contains('/') => insert(&["wrap", "--"]),
        (_, WordKind::Program) => {
            unclear(format!("to run the program `{word}` as a server: `signalbox wrap -- {word}`"))
        }
        (_, WordKind::File) => {
            unclear(format!("{word} is not a program; make it executable (chmod +x), or name what runs it"))
        }
    }
}

/// Looks up a word: a path is a file, a bare word is a file here with an extension, or a program on PATH.
#[must_use]
pub fn look(word: &OsStr) -> WordKind {
    let path = Path::new(word);
    let here = path.metadata().ok().filter(std::fs::Metadata::is_file);
    let is_path = path.components().count() > 1 || word.to_string_lossy().starts_with("./");
    match here {
        Some(file) if is_path && file.permissions().mode() & 0o111 != 0 => return WordKind::Program,
        Some(_) if is_path || path.extension().is_some() => return WordKind::File,
        _ if is_path => return WordKind::Nothing,
        _ => {}
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(path));
    let runs =
        |place: &Path| place.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    if places.any(|place| runs(&place)) { WordKind::Program } else { WordKind::Nothing }
}

/// Returns `true` if standard input is a pipe or a socket, so that a program is at the other end.
#[must_use]
pub fn is_piped() -> bool {
    let kind = rustix::fs::fstat(std::io::stdin()).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    kind.is_ok_and(|kind| matches!(kind, rustix::fs::FileType::Fifo | rustix::fs::FileType::Socket))
}

/// Returns the index of the first word that is neither a flag nor the value of one.
fn first_word(line: &[OsString]) -> Option<usize> {
    let mut place = 1;
    while let Some(word) = line.get(place) {
        let text = word.to_string_lossy();
        if takes_value(&text) {
            place += 2;
        } else if text.starts_with('-') {
            place += 1;
        } else {
            return Some(place);
        }
    }
    None
}

/// Returns `true` for a global flag whose value is the next word.
fn takes_value(word: &str) -> bool {
    let cli = Cli::command();
    let mut flags = cli.get_arguments().filter(|one| one.get_action().takes_values());
    flags.any(|one| {
        let long = word.strip_prefix("--").is_some_and(|name| one.get_long() == Some(name));
        long || word
            .strip_prefix('-')
            .is_some_and(|name| one.get_short().is_some_and(|short| name == short.to_string()))
    })
}

fn is_command(word: &str) -> bool {
    word == "help" || Cli::command().find_subcommand(word).is_some()
}

fn ending(word: &str) -> &str {
    Path::new(word).extension().and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        check_at(line, expected, false);
    }

    fn check_at(line: &str, expected: &str, piped: bool) {
        let look = |word: &OsStr| match word.to_str().unwrap() {
            "./server" | "npx" | "serve" | "ls" | "/bin/my server" => WordKind::Program,
            "./server.js" | "server.mjs" | "a/b.py" | "./x.ts" | "./notes.txt" => WordKind::File,
            _ => WordKind::Nothing,
        };
        let words = std::iter::once("signalbox").chain(line.split(' ').filter(|word| !word.is_empty()));
        let shown = match infer(words.map(OsString::from).collect(), &look, piped) {
            InferredLine::Line(line) => {
                line[1..].iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
            }
            InferredLine::Unclear { hint, .. } => format!("? {}", hint.unwrap_or_default()),
        };
        assert_eq!(shown, expected, "{line}");
    }

    /// Proves SO-2.
    #[test]
    fn a_server_an_address_and_a_port_are_understood() {
        check("./server.js", "wrap -- node ./server.js");
        check("--data-dir d server.mjs --root /srv", "--data-dir d wrap -- node server.mjs --root /srv");
        check("a/b.py", "wrap -- python3 a/b.py");
        check("./server", "wrap -- ./server");
        check("npx -y foo --json", "wrap -- npx -y foo --json");
        check("http://127.0.0.1:1/mcp", "proxy http://127.0.0.1:1/mcp");
        check("HTTPS://mcp.example/mcp --no-tape", "proxy HTTPS://mcp.example/mcp --no-tape");
        check("talk.tape", "tape show talk.tape");
        check_at("talk.tape", "replay serve talk.tape", true);
        check(":8080", "serve --listen=127.0.0.1:8080");
        check("-c x.toml :0", "-c x.toml serve --listen=127.0.0.1:0");
    }

    /// Proves SO-2.
    #[test]
    fn a_command_always_wins_and_nothing_is_no_word() {
        let address = "--url http://127.0.0.1:1/mcp --key k --log-level warn --data-dir d tools list";
        for line in [address, "", "--json", "serve", "help wrap", "-c npx status", "--config=npx", "wrap -- npx -y foo"]
        {
            check(line, line);
        }
    }

    /// Proves SO-2.
    #[test]
    fn what_is_not_understood_is_left_to_the_usual_error_with_a_hint() {
        check("statsu", "? ");
        check(":99999", "? ");
        check("./nowhere.js", "? there is no file ./nowhere.js");
        check("ls", "? to run the program `ls` as a server: `signalbox wrap -- ls`");
        check(
            "./x.ts",
            "? ./x.ts is TypeScript; name what runs it, as in `signalbox wrap -- npx tsx ./x.ts`, or compile it",
        );
        check("./notes.txt", "? ./notes.txt is not a program; make it executable (chmod +x), or name what runs it");
    }
}
