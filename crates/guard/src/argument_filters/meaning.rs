//! Meaning of an argument, from its name, its schema and the name of its tool.

use super::name_rules::meaning_of_name;
use super::text_readings::prefix;
use serde_json::Value;

/// Maximum number of bytes of a description that are read.
const MAX_DESCRIPTION: usize = 1024;
/// Maximum number of bytes of a name that are read.
const MAX_NAME: usize = 256;

/// Meaning of a string, which decides which filters apply to it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Meaning {
    /// Name of a file or folder, relative or absolute.
    Path,
    /// Address that the tool fetches or stores.
    Url,
    /// Name or address of a machine.
    Host,
    /// Command line for a shell.
    Command,
    /// Argument of a command, or name of a program.
    ShellWord,
    /// SQL that the caller is meant to write.
    Sql,
    /// Value that is put into a statement.
    SqlValue,
    /// Template that the tool renders.
    Template,
    /// Name or number of something: a user, a branch, a table.
    Identifier,
    /// Text for people or models, or source code. It may contain anything.
    FreeText,
    /// Password, token or key.
    Secret,
    /// Nothing is known about the string.
    Unknown,
}

use Meaning::{Command, FreeText, Host, Identifier, Path, Secret, ShellWord, Sql, SqlValue, Unknown, Url};

/// Words that say that a tool sends statements to a database.
const DATABASE_WORDS: &[&str] = &[
    "sql",
    "mysql",
    "postgres",
    "postgresql",
    "pg",
    "sqlite",
    "db",
    "database",
    "bigquery",
    "snowflake",
    "duckdb",
    "clickhouse",
    "mariadb",
    "oracle",
    "mssql",
    "redshift",
];
/// Words that say that a tool runs programs.
const PROGRAM_WORDS: &[&str] =
    &["run", "exec", "execute", "shell", "bash", "command", "terminal", "cmd", "process", "powershell", "spawn", "cli"];
/// Words that say that a tool handles files.
const FILE_WORDS: &[&str] = &["file", "files", "directory", "folder", "filesystem", "fs", "dir"];
/// Words that say that a tool talks to other machines.
const NETWORK_WORDS: &[&str] = &[
    "fetch",
    "http",
    "https",
    "request",
    "url",
    "web",
    "browser",
    "navigate",
    "scrape",
    "crawl",
    "download",
    "ping",
    "dns",
    "whois",
    "port",
    "scan",
    "ssh",
    "curl",
    "connect",
    "traceroute",
    "nslookup",
];

/// Returns the meaning of a string argument.
#[must_use]
pub fn meaning(name: &str, schema: Option<&Value>, tool_name: &str) -> Meaning {
    let member = |key: &str| schema.and_then(|schema| schema.get(key));
    if let Some(meaning) = member("format").and_then(Value::as_str).and_then(meaning_of_format) {
        return meaning;
    }
    // A closed list leaves nothing to smuggle in.
    if member("enum").is_some() || member("const").is_some() {
        return Identifier;
    }
    let (name, tool) = (words(name), words(tool_name));
    let description = member("description").and_then(Value::as_str).unwrap_or_default();
    let by_tool = meaning_for_tool(&name, &tool, description);
    let by_name = by_tool.or_else(|| meaning_of_name(&name));
    by_name.unwrap_or_else(|| meaning_of_description(description))
}

fn meaning_of_format(format: &str) -> Option<Meaning> {
    Some(match format {
        "uri" | "url" | "uri-reference" | "iri" | "iri-reference" | "uri-template" => Url,
        "hostname" | "idn-hostname" | "ipv4" | "ipv6" => Host,
        "path" | "file-path" | "directory-path" => Path,
        "email" | "idn-email" | "uuid" | "date" | "date-time" | "time" | "duration" => Identifier,
        "password" => Secret,
        "regex" => FreeText,
        _ => return None,
    })
}

/// Names that mean something in the tools of one kind only.
fn meaning_for_tool(name: &[String], tool: &[String], description: &str) -> Option<Meaning> {
    let is_tool = |known: &[&str]| tool.iter().any(|word| known.contains(&word.as_str()));
    let last = name.last().map_or("", String::as_str);
    let lower = prefix(description, MAX_DESCRIPTION).to_lowercase();
    if matches!(last, "query" | "sql" | "q" | "statement")
        && (is_tool(DATABASE_WORDS)
            || lower.contains("sql query")
            || lower.contains("sql statement")
            || lower.contains("select query")
            || lower.contains("sql "))
    {
        return Some(Sql);
    }
    // What a git tool compares or checks out may be taken for an option.
    if matches!(last, "target" | "source" | "from" | "to" | "start" | "rev") && tool.iter().any(|word| word == "git") {
        return Some(Identifier);
    }
    if matches!(last, "value" | "values") && is_tool(&["browser", "puppeteer", "fill", "select", "type"]) {
        return Some(FreeText);
    }
    if last == "query" && tool == ["query"] {
        return Some(Sql);
    }
    if matches!(last, "params" | "parameters" | "values" | "value" | "where" | "filter" | "condition" | "conditions")
        && is_tool(DATABASE_WORDS)
    {
        return Some(SqlValue);
    }
    if matches!(last, "script" | "code" | "input") && is_tool(&["bash", "shell", "terminal", "command", "powershell"]) {
        return Some(Command);
    }
    if matches!(last, "options" | "option" | "params" | "package" | "script") && is_tool(PROGRAM_WORDS) {
        return Some(ShellWord);
    }
    if matches!(last, "source" | "target" | "from" | "to" | "output" | "input" | "old" | "new" | "location")
        && is_tool(FILE_WORDS)
    {
        return Some(Path);
    }
    // Text of the page that a browser tool handles, not an address.
    if matches!(last, "target" | "address" | "site" | "page" | "resource" | "location")
        && is_tool(NETWORK_WORDS)
        && !lower.contains("element")
        && !lower.contains("selector")
    {
        return Some(if matches!(last, "site" | "page" | "resource") { Url } else { Host });
    }
    (last == "pattern" && lower.contains("glob")).then_some(FreeText)
}

fn meaning_of_description(description: &str) -> Meaning {
    let lower = prefix(description, MAX_DESCRIPTION).to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    if says(&["file path", "path to", "path of", "filesystem path", "directory to", "name of the file", "file to "]) {
        Path
    } else if says(&["url of", "url to", "the url", "a url", "http://", "https://"]) {
        Url
    } else if says(&["hostname", "ip address", "host to", "host name"]) {
        Host
    } else if says(&["shell command", "command to run", "command to execute", "command line"]) {
        Command
    } else if says(&["sql query", "sql statement"]) {
        Sql
    } else if says(&["unique identifier", "id of", "identifier of", "name of the"]) {
        Identifier
    } else if says(&["text", "content", "message", "description", "prose", "markdown", "natural language"]) {
        FreeText
    } else {
        Unknown
    }
}

/// Splits a name into its words in lower case: `repoPath`, `repo_path` and `repo-path` are the same.
fn words(name: &str) -> Vec<String> {
    let name = prefix(name, MAX_NAME);
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let starts = char.is_uppercase() && (was_lower || (next_is_lower && !word.is_empty()));
        if (starts || !char.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        was_lower = char.is_lowercase() || char.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_split_into_words() {
        for (name, expected) in [
            ("repoPath", "repo path"),
            ("repo_path", "repo path"),
            ("HTMLBody", "html body"),
            ("imageURL", "image url"),
            ("a-b.c", "a b c"),
            ("", ""),
        ] {
            assert_eq!(words(name).join(" "), expected);
        }
    }

    #[test]
    fn the_schema_decides_before_the_name() {
        assert_eq!(meaning("x", Some(&json!({"format": "uri"})), "t"), Url);
        assert_eq!(meaning("path", Some(&json!({"enum": ["a"]})), "t"), Identifier);
        assert_eq!(meaning("thing", Some(&json!({"description": "Path to the image"})), "t"), Path);
        assert_eq!(meaning("thing", None, "t"), Unknown);
    }

    #[test]
    fn the_tool_decides_what_a_query_is() {
        assert_eq!(meaning("query", None, "search_issues"), FreeText);
        assert_eq!(meaning("query", None, "read_query_sqlite"), Sql);
        assert_eq!(meaning("query", Some(&json!({"description": "SQL query to execute"})), "read_query"), Sql);
        assert_eq!(meaning("source", None, "move_file"), Path);
        assert_eq!(meaning("source", None, "cite"), Unknown);
        assert_eq!(meaning("script", None, "run_bash"), Command);
        assert_eq!(meaning("script", None, "puppeteer_evaluate"), FreeText);
        assert_eq!(meaning("args", None, "run_process"), ShellWord);
    }
}
