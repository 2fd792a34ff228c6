//! SQL in values that are no SQL, and statements that destroy or steal.

use super::finding::{FilterKind, FindingRisk, Violation};
use super::text_readings::text_readings;

/// Maximum number of tokens that are examined. Values that name something are short.
const MAX_TOKENS: usize = 100_000;
/// Number of tokens that a condition may have before it is no constant one.
const MAX_CONDITION: usize = 12;
/// Functions and procedures that wait, read files or run programs.
const PROBES: [&str; 16] = [
    "sleep",
    "pg_sleep",
    "benchmark",
    "xp_cmdshell",
    "xp_dirtree",
    "load_file",
    "load_extension",
    "extractvalue",
    "updatexml",
    "utl_http.request",
    "dbms_pipe.receive_message",
    "pg_read_file",
    "pg_ls_dir",
    "lo_import",
    "sp_oacreate",
    "dbms_lock.sleep",
];
/// Statements that change or remove data.
const DESTRUCTIVE: [&str; 9] = ["drop", "truncate", "delete", "alter", "update", "insert", "grant", "shutdown", "exec"];

/// Statements that remove data or change who may read it.
const REMOVING: [&str; 6] = ["drop", "truncate", "delete", "alter", "grant", "shutdown"];

/// Part of a text: a word or number in lower case, or a character of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    /// Text between two quotes, without them.
    Quoted(String),
    /// Quote without a partner.
    OpenQuote,
    Mark(char),
    /// `--`, `#` or `/*`.
    Comment,
}

impl Token {
    fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own == word)
    }

    fn is_value(&self) -> bool {
        matches!(self, Self::Word(_) | Self::Quoted(_))
    }
}

fn sql(risk: FindingRisk, reason: &'static str) -> Option<Violation> {
    Some(Violation::new(FilterKind::Sql, risk, reason))
}

/// Checks a value that is put into a statement. SQL syntax after a quote leaves the place of the value.
pub(super) fn check_sql_value(value: &str) -> Option<Violation> {
    text_readings(value).iter().find_map(|text| {
        // Within the statement the value stands between quotes, or between none. A quote in it ends the first kind.
        let breaks_out =
            text.find(['\'', '"']).and_then(|at| text.get(at + 1..)).and_then(|rest| check_tail(&tokens(rest), true));
        breaks_out.or_else(|| check_tail(&tokens(text), false))
    })
}

/// Checks what follows a value within a statement.
fn check_tail(tokens: &[Token], after_quote: bool) -> Option<Violation> {
    if let Some(found) = check_steps(tokens) {
        return Some(found);
    }
    let last_comment = tokens.iter().rposition(|token| *token == Token::Comment);
    for (at, token) in tokens.iter().enumerate() {
        let rest = tokens.get(at + 1..).unwrap_or_default();
        let starts = rest
            .first()
            .is_some_and(|next| DESTRUCTIVE.iter().chain(&["select", "create", "declare"]).any(|word| next.is(word)));
        if *token == Token::Mark(';') && starts && rest.len() > 1 {
            return sql(FindingRisk::High, "value with a second SQL statement");
        }
        let is_doubled = matches!(token, Token::Mark('|' | '&')) && rest.first() == Some(token);
        if (token.is("or") || token.is("and") || is_doubled) && is_tautology(rest, after_quote) {
            return sql(FindingRisk::High, "value with an SQL condition");
        }
        if (token.is("order") || token.is("group"))
            && rest.first().is_some_and(|next| next.is("by"))
            && last_comment.is_some_and(|last| last > at)
        {
            return sql(FindingRisk::High, "value with an SQL clause");
        }
        if token.is("having") && is_tautology(rest, after_quote) {
            return sql(FindingRisk::High, "value with an SQL condition");
        }
    }
    // `'-'`: arithmetic on two empty texts is zero, which equals every name.
    if after_quote && matches!(tokens, [Token::Mark('-' | '^' | '*' | '+' | '&' | '|' | '='), Token::OpenQuote]) {
        return sql(FindingRisk::Medium, "value with an SQL operator between quotes");
    }
    let ends = after_quote
        && (tokens.first() == Some(&Token::Comment)
            || matches!(
                tokens,
                [Token::Mark(';' | ')'), .., Token::Comment]
                    | [Token::Mark(')'), Token::Comment, ..]
                    | [Token::Mark(';'), Token::Comment, ..]
            ));
    if ends { sql(FindingRisk::Medium, "value that ends an SQL statement") } else { None }
}

/// Finds steps that have no use in a value at all.
fn check_steps(tokens: &[Token]) -> Option<Violation> {
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let next = |offset: usize| tokens.get(at + offset);
        let is_select = |token: Option<&Token>| token.is_some_and(|token| token.is("select"));
        if word == "union" {
            let mut after =
                tokens.iter().skip(at + 1).filter(|token| !matches!(token, Token::Comment | Token::Mark('(')));
            let mut first = after.next();
            if first.is_some_and(|first| first.is("all") || first.is("distinct")) {
                first = after.next();
            }
            if is_select(first) && after.next().is_some() {
                return sql(FindingRisk::High, "value with an SQL union");
            }
        }
        if PROBES.contains(&word.as_str())
            && next(1) == Some(&Token::Mark('('))
            && next(2).is_some_and(|token| token.is_value() || *token == Token::OpenQuote)
            && tokens.len() > 3
            && at > 0
        {
            return sql(FindingRisk::High, "value with an SQL function that waits or reads files");
        }
        let follows = |words: &[&str]| {
            words.iter().enumerate().all(|(offset, word)| next(offset + 1).is_some_and(|token| token.is(word)))
        };
        if (word == "waitfor" && (follows(&["delay"]) || follows(&["time"])))
            || (word == "into" && (follows(&["outfile"]) || follows(&["dumpfile"])))
            || (word == "exec" && follows(&["xp_cmdshell"]))
            || (word == "exec" && follows(&["master"]))
        {
            return sql(FindingRisk::High, "value with an SQL command");
        }
    }
    None
}

/// Returns `true` for a comparison of constants, such as `1=1`, `'a'='a` and `1 like 1`, or a subquery.
fn is_tautology(tokens: &[Token], after_quote: bool) -> bool {
    if let [Token::Mark('('), select, _, ..] = tokens
        && select.is("select")
    {
        return true;
    }
    if let [truth, Token::Comment, ..] = tokens
        && truth.is("true")
    {
        return true;
    }
    let mut rest = tokens
        .iter()
        .take(MAX_CONDITION)
        .filter(|token| !matches!(token, Token::Mark('(' | ')' | '|' | '&') | Token::Comment))
        .skip_while(|token| token.is("not"));
    let Some(left) = rest.next() else { return false };
    let constant = |token: &Token| match token {
        Token::Word(word) => {
            word.starts_with(|first: char| first.is_ascii_digit())
                || matches!(word.as_str(), "true" | "null" | "select")
        }
        Token::Quoted(_) | Token::OpenQuote => true,
        _ => false,
    };
    let second = rest.next();
    let compares = second.is_some_and(|token| {
        matches!(token, Token::Mark('=' | '<' | '>' | '!'))
            || ["like", "in", "is", "between", "regexp", "rlike"].iter().any(|word| token.is(word))
    });
    let right = rest.find(|token| !matches!(token, Token::Mark('=' | '<' | '>')));
    match left {
        left if left.is("exists")
            || left.is("ascii")
            || left.is("substring")
            || left.is("substr")
            || left.is("sleep") =>
        {
            second.is_some()
        }
        left if compares && constant(left) => right.is_none_or(|right| constant(right) || right == left),
        // A column compared with a constant, behind a quote that ends the value.
        Token::Word(_) if after_quote && compares => right.is_none_or(|right| constant(right) || right == left),
        left => after_quote && constant(left) && second.is_none_or(is_left_open),
    }
}

/// Returns `true` for a token with which an attacker joins the quote that ends the value's place: `' or ''-'`.
fn is_left_open(token: &Token) -> bool {
    matches!(token, Token::Comment | Token::OpenQuote | Token::Quoted(_) | Token::Mark('-' | '^' | '*' | '+' | '&'))
}

/// Checks a statement that a caller is meant to write. Only what destroys or spies is reported.
pub(super) fn check_statement(statement: &str) -> Option<Violation> {
    let tokens = tokens(statement);
    let words: Vec<&str> = tokens
        .iter()
        .filter_map(|token| if let Token::Word(word) = token { Some(word.as_str()) } else { None })
        .collect();
    let has = |word: &str| words.contains(&word);
    let follows = |first: &str, second: &str| words.windows(2).any(|two| two == [first, second]);
    let runs = has("xp_cmdshell")
        || (has("copy") && has("program"))
        || follows("into", "outfile")
        || follows("into", "dumpfile")
        || has("load_file")
        || has("pg_read_file")
        || has("sys_exec")
        || has("load_extension");
    if runs {
        return sql(FindingRisk::Medium, "SQL statement that runs programs or reads files");
    }
    let removes = |word: &String| REMOVING.contains(&word.as_str());
    let stacked = tokens.windows(2).any(|two| matches!(two, [Token::Mark(';'), Token::Word(word)] if removes(word)));
    if stacked && ["select", "insert", "update"].iter().any(|first| words.first() == Some(first)) {
        return sql(FindingRisk::Low, "SQL statement followed by a destructive one");
    }
    let spies = has("union")
        && words.iter().any(|word| {
            word.starts_with("information_schema")
                || word.starts_with("sqlite_master")
                || word.starts_with("pg_catalog")
                || word.starts_with("mysql.user")
                || word.starts_with("pg_shadow")
        });
    if spies {
        return sql(FindingRisk::Low, "SQL union with the tables of the system");
    }
    let tautology = tokens.last() == Some(&Token::Comment)
        || tokens.iter().skip_while(|token| **token != Token::Comment).count() > 0;
    let condition = tokens.iter().enumerate().any(|(at, token)| {
        token.is("or")
            && is_tautology(tokens.get(at + 1..at + 6).unwrap_or(tokens.get(at + 1..).unwrap_or_default()), false)
    });
    if tautology && condition {
        sql(FindingRisk::Low, "SQL statement with a constant condition and a comment")
    } else {
        None
    }
}

/// Splits a text into tokens. `/**/` between words is a space, as attackers use it.
fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    // Each search for a closing quote runs to the end of the text at most once.
    let mut closes = [true; 3];
    while let Some(first) = rest.chars().next().filter(|_| out.len() < MAX_TOKENS) {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let (token, next) = match first {
            '\'' | '"' | '`' => quoted(first, after, &mut closes),
            '-' if after.starts_with('-') => (Token::Comment, after.split_once('\n').map_or("", |(_, rest)| rest)),
            '#' => (Token::Comment, after.split_once('\n').map_or("", |(_, rest)| rest)),
            // MySQL runs what such a comment contains.
            '/' if after.starts_with("*!") => (Token::Mark(' '), body_start(after)),
            '/' if after.starts_with('*') => match after.get(1..).and_then(|body| body.split_once("*/")) {
                Some((_, next)) => (Token::Mark(' '), next),
                None => (Token::Comment, ""),
            },
            '*' if after.starts_with('/') => (Token::Mark(' '), after.get(1..).unwrap_or_default()),
            _ if is_word(first) => {
                let end = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
                (Token::Word(rest.get(..end).unwrap_or_default().to_lowercase()), rest.get(end..).unwrap_or_default())
            }
            _ => (Token::Mark(first), after),
        };
        if token != Token::Mark(' ') {
            out.push(token);
        }
        rest = next.trim_start();
    }
    out
}

fn body_start(after: &str) -> &str {
    after.get(2..).unwrap_or_default().trim_start_matches(|char: char| char.is_ascii_digit())
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '.' | '@' | '$')
}

fn quoted<'a>(quote: char, after: &'a str, closes: &mut [bool; 3]) -> (Token, &'a str) {
    let open = match quote {
        '\'' => &mut closes[0],
        '"' => &mut closes[1],
        _ => &mut closes[2],
    };
    let found = if *open { after.split_once(quote) } else { None };
    *open = found.is_some();
    found.map_or((Token::OpenQuote, after), |(inner, rest)| (Token::Quoted(inner.to_owned()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_sql_are_found() {
        for value in [
            "' or 1=1",
            "' OR '1'='1",
            "' or 1=1 --",
            "\" or \"\"=\"",
            "admin'--",
            "admin' #",
            "1 or 1=1",
            "1 OR 1=1--",
            "1' or '1'='1' /*",
            "') or ('a'='a",
            "1; DROP TABLE users",
            "x'; drop table users; --",
            "1 UNION SELECT username, password FROM users",
            "' union all select null,null--",
            "1/**/union/**/select/**/1",
            "1 /*!50000union*/ select 2",
            "' and sleep(5)--",
            "1; waitfor delay '0:0:5'",
            "1 and 1=1",
            "' AND (SELECT 1)=1",
            "' or exists(select 1)",
            "1); delete from x where (1",
            "' or 1 like 1",
            "' || '1'='1",
            "%27%20or%201%3D1",
            "\u{ff07} or 1=1",
            "1' order by 3--",
            "x' into outfile '/tmp/x",
            "' or true--",
            "' or name='x",
            "1'; exec xp_cmdshell('dir')",
            "'-'",
            "' or ''-'",
            "') or ('x')=('x",
            "or true--",
            "' or 1 --",
        ] {
            assert!(check_sql_value(value).is_some(), "{value}");
        }
    }

    #[test]
    fn ordinary_values_pass() {
        for value in [
            "",
            "42",
            "ada",
            "O'Brien",
            "it's",
            "d'or",
            "Tom & Jerry",
            "a--b",
            "my-branch",
            "x; y",
            "salt or pepper",
            "1 or 2",
            "select",
            "union square",
            "sleep (verb)",
            "drop table",
            "order by phone",
            "Rock 'n' Roll",
            "\"quoted\"",
            "C# and F#",
            "5' 11\"",
            "main#1",
            "a/*.rs",
            "feature/and-or",
            "true or false",
            "O'Neil and Sons",
            "students' union selects its board",
            "black and white=grey",
            "id=1",
            "user@example.com",
            "A=B or C=D",
            "don't update or insert",
            "x' y",
        ] {
            assert_eq!(check_sql_value(value), None, "{value}");
        }
    }

    #[test]
    fn only_destructive_statements_are_reported() {
        for statement in [
            "SELECT * FROM users WHERE id = 1",
            "DROP TABLE t",
            "DELETE FROM t WHERE a = 1 OR b = 2",
            "CREATE TABLE a (b int); INSERT INTO a VALUES (1);",
            "select 'a; drop table x'",
            "SELECT a FROM b UNION SELECT c FROM d",
            "SELECT name FROM sqlite_master",
            "-- all\nSELECT 1",
            "select 1 where 1=1 -- all",
        ] {
            assert_eq!(check_statement(statement), None, "{statement}");
        }
        for statement in [
            "SELECT 1; DROP TABLE users",
            "SELECT a FROM b UNION SELECT table_name FROM information_schema.tables",
            "SELECT * FROM users WHERE name = '' OR 1=1 --'",
            "COPY t TO PROGRAM 'sh'",
            "SELECT load_file('/etc/x')",
        ] {
            assert!(check_statement(statement).is_some(), "{statement}");
        }
    }
}
