//! Meaning of an argument from the words of its name.

use super::meaning::Meaning;
use Meaning::{Command, FreeText, Host, Identifier, Path, Secret, ShellWord, Sql, Template, Url};

/// Words of an argument's name and what they mean. The first entry whose word is in its place decides.
struct NameRule {
    place: Place,
    words: &'static [&'static str],
    meaning: Meaning,
}

/// Place of a word in the name of an argument.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    /// The name has no other words.
    Whole,
    /// Last word: `repo_path`, `imageUrl`.
    Last,
    /// Anywhere in the name: `url_list`.
    Any,
}

const fn rule(place: Place, words: &'static [&'static str], meaning: Meaning) -> NameRule {
    NameRule { place, words, meaning }
}

use Place::{Any, Last, Whole};

static NAME_RULES: &[NameRule] = &[
    rule(Any, &["password", "passwd", "passphrase", "secret", "credential", "credentials", "apikey"], Secret),
    rule(Last, &["token", "pat"], Secret),
    // A cursor looks like text and means something to its server only.
    rule(Last, &["cursor"], Identifier),
    rule(
        Last,
        &[
            "filename",
            "filenames",
            "filepath",
            "filepaths",
            "path",
            "paths",
            "file",
            "files",
            "dir",
            "dirs",
            "directory",
            "directories",
            "folder",
            "folders",
            "cwd",
            "workdir",
            "pathname",
            "dirname",
            "basedir",
        ],
        Path,
    ),
    rule(Any, &["filepath", "directory", "workspace", "dirpath"], Path),
    rule(Whole, &["root", "roots", "destination", "workspace", "dest", "src"], Path),
    rule(
        Last,
        &[
            "url", "urls", "uri", "uris", "href", "link", "links", "webhook", "endpoint", "website", "webpage",
            "homepage",
        ],
        Url,
    ),
    rule(Any, &["url", "uri"], Url),
    rule(Last, &["host", "hostname", "hosts", "domain", "domains", "ip", "fqdn", "server"], Host),
    rule(Any, &["hostname", "ip"], Host),
    rule(Last, &["command", "commands", "cmd", "cmdline", "shell"], Command),
    rule(Last, &["args", "argv", "arguments", "flags", "argument", "executable", "binary", "program"], ShellWord),
    rule(Last, &["sql", "statement", "statements"], Sql),
    rule(Last, &["template", "tmpl"], Template),
    rule(
        Last,
        &[
            "id",
            "ids",
            "uuid",
            "sha",
            "slug",
            "owner",
            "repo",
            "repository",
            "organization",
            "org",
            "branch",
            "revision",
            "ref",
            "commit",
            "tag",
            "tags",
            "label",
            "labels",
            "user",
            "username",
            "login",
            "account",
            "email",
            "key",
            "container",
            "image",
            "namespace",
            "pod",
            "service",
            "package",
            "packages",
            "module",
            "version",
            "table",
            "tables",
            "column",
            "columns",
            "schema",
            "database",
            "collection",
            "bucket",
            "channel",
            "project",
            "assignees",
            "role",
            "group",
            "region",
            "timezone",
            "port",
            "cluster",
            "node",
            "environment",
            "base",
            "head",
            "remote",
            "symbol",
            "ticker",
            "country",
            "city",
            "code_name",
        ],
        Identifier,
    ),
    rule(
        Whole,
        &[
            "name",
            "names",
            "type",
            "kind",
            "category",
            "status",
            "state",
            "order",
            "sort",
            "format",
            "lang",
            "language",
            "locale",
            "currency",
            "unit",
            "units",
            "mode",
            "level",
            "color",
            "branch_name",
            "date",
            "since",
            "until",
            "time",
        ],
        Identifier,
    ),
    rule(Last, &["name", "names", "type", "date", "timestamp", "ts", "language", "format"], Identifier),
];

/// Names of free text. They win over nothing else, and keep a string from being judged by its looks.
const TEXT_WORDS: &[&str] = &[
    "body",
    "content",
    "contents",
    "text",
    "message",
    "msg",
    "description",
    "title",
    "comment",
    "comments",
    "prompt",
    "note",
    "notes",
    "summary",
    "subject",
    "caption",
    "thought",
    "markdown",
    "html",
    "code",
    "script",
    "diff",
    "patch",
    "query",
    "queries",
    "q",
    "question",
    "instructions",
    "instruction",
    "input",
    "data",
    "reason",
    "goal",
    "search",
    "topic",
    "observations",
    "function",
    "expression",
    "regex",
    "pattern",
    "patterns",
    "selector",
    "css",
    "xml",
    "yaml",
    "json",
    "snippet",
    "answer",
    "feedback",
    "context",
    "story",
    "bio",
    "element",
    "target",
    "intent",
    "review",
    "explanation",
    "keywords",
    "keyword",
    "stdin",
    "old",
    "new",
    "replacement",
    "tbs",
    "reaction",
    "formula",
    "headline",
    "term",
    "terms",
];

/// Returns the meaning that the words of a name suggest.
pub(super) fn meaning_of_name(name: &[String]) -> Option<Meaning> {
    let last = name.last()?;
    // `pathPattern`, `excludePaths` of a crawler and the like select, they do not open.
    let selects = name.iter().any(|word| {
        matches!(
            word.as_str(),
            "pattern"
                | "patterns"
                | "regex"
                | "regexp"
                | "exclude"
                | "excludes"
                | "include"
                | "includes"
                | "select"
                | "filter"
                | "filters"
                | "glob"
        )
    });
    if selects {
        return Some(FreeText);
    }
    let fits = |rule: &NameRule| match rule.place {
        Place::Whole => name.len() == 1 && rule.words.contains(&last.as_str()),
        Place::Last => rule.words.contains(&last.as_str()),
        Place::Any => name.iter().any(|word| rule.words.contains(&word.as_str())),
    };
    let is_text = TEXT_WORDS.contains(&last.as_str());
    // `file_content`, `url_description`.
    if is_text {
        return Some(FreeText);
    }
    if let [.., before, _] = name {
        // `path_or_url`, `api_key`.
        if (before == "api" || before == "access" || before == "private" || before == "auth")
            && matches!(last.as_str(), "key" | "token")
        {
            return Some(Secret);
        }
    }
    if name.iter().any(|word| word == "next" || word == "page" || word == "cursor") && last == "token" {
        return Some(Identifier);
    }
    // `filename` written as two words.
    if last == "name" && name.iter().any(|word| matches!(word.as_str(), "file" | "dir" | "folder" | "directory")) {
        return Some(Path);
    }
    if last == "name" && name.iter().any(|word| matches!(word.as_str(), "host" | "domain")) {
        return Some(Host);
    }
    NAME_RULES.iter().find(|rule| fits(rule)).map(|rule| rule.meaning)
}
