//! Words of a command line, as a POSIX shell splits them.

/// Maximum number of words. Further ones are ignored.
const MAX_WORDS: usize = 20_000;
/// Maximum nesting of substitutions and quotes. Deeper ones are read as text.
const MAX_NESTED: usize = 16;

/// Stands for the output of a substitution in a word.
pub(super) const UNKNOWN_OUTPUT: char = '\u{fffd}';

/// Command with its arguments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct SimpleCommand {
    /// Words without quotes. Redirections are words of their own.
    pub words: Vec<String>,
    /// The command's input is the output of the command before it.
    pub is_piped: bool,
    /// Index of the command in whose words this one is substituted.
    pub substituted_in: Option<usize>,
    /// The name of the command is the output of another one.
    pub has_substituted_name: bool,
}

/// Reason for which the lexer reads the current characters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Context {
    /// Between the parentheses of `$(`, `<(` or the backticks of a substitution.
    Substitution {
        close: char,
        outer: usize,
    },
    DoubleQuotes,
}

struct ShellLexer {
    commands: Vec<SimpleCommand>,
    current: usize,
    word: String,
    has_word: bool,
    contexts: Vec<Context>,
    count: usize,
}

/// Splits a command line into its commands, some of which may be empty.
pub(super) fn simple_commands(line: &str) -> Vec<SimpleCommand> {
    let mut lexer = ShellLexer {
        commands: vec![SimpleCommand::default()],
        current: 0,
        word: String::new(),
        has_word: false,
        contexts: Vec::new(),
        count: 0,
    };
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let next = chars.peek().copied();
        match char {
            '\\' => {
                // A backslash joins lines and quotes a character.
                if let Some(escaped) = chars.next().filter(|escaped| *escaped != '\n') {
                    lexer.push(escaped);
                }
            }
            '$' if next == Some('{') && !lexer.is_literal() => lexer.variable(&mut chars),
            '$' | '<' | '>' if next == Some('(') && (char == '$' || !lexer.in_quotes()) && lexer.enter(')') => {
                chars.next();
            }
            '`' if lexer.closes('`') => lexer.leave(),
            '`' if lexer.enter('`') => {}
            ')' if lexer.closes(')') => lexer.leave(),
            '"' if lexer.in_quotes() => drop(lexer.contexts.pop()),
            '"' if lexer.contexts.len() < MAX_NESTED => {
                lexer.contexts.push(Context::DoubleQuotes);
                lexer.has_word = true;
            }
            _ if lexer.in_quotes() => lexer.push(char),
            '\'' => {
                lexer.has_word = true;
                chars.by_ref().take_while(|inner| *inner != '\'').for_each(|inner| lexer.push(inner));
            }
            '|' => lexer.end_command(next != Some('|')),
            ';' | '&' | '\n' | '(' | ')' => {
                // `>&` and `&>` are redirections.
                if char == '&' && (lexer.word.ends_with('>') || next == Some('>')) {
                    lexer.push(char)
                } else {
                    lexer.end_command(false)
                }
            }
            _ if char.is_whitespace() => lexer.end_word(),
            '>' | '<' => {
                if !lexer.word.ends_with(['>', '&']) && !lexer.word.chars().all(|char| char.is_ascii_digit()) {
                    lexer.end_word();
                }
                lexer.push(char);
                if next != Some('>') && next != Some('&') {
                    lexer.end_word();
                }
            }
            _ => lexer.push(char),
        }
    }
    lexer.end_word();
    lexer.commands
}

impl ShellLexer {
    fn in_quotes(&self) -> bool {
        self.contexts.last() == Some(&Context::DoubleQuotes)
    }

    fn is_literal(&self) -> bool {
        self.count >= MAX_WORDS
    }

    fn push(&mut self, char: char) {
        self.word.push(char);
        self.has_word = true;
    }

    /// Reads `${IFS}` as the space that it stands for, and keeps other variables.
    fn variable(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        const LONGEST: usize = 64;
        let mut text = "$".to_owned();
        while let Some(char) =
            chars.next_if(|char| text.len() < LONGEST && !char.is_whitespace() && !text.ends_with('}'))
        {
            text.push(char);
        }
        if text.to_ascii_lowercase().starts_with("${ifs") {
            self.end_word()
        } else {
            self.word.push_str(&text)
        }
        self.has_word |= !self.word.is_empty();
    }

    fn closes(&self, wanted: char) -> bool {
        matches!(self.contexts.last(), Some(Context::Substitution { close, .. }) if *close == wanted)
    }

    fn enter(&mut self, close: char) -> bool {
        let has_room = self.contexts.len() < MAX_NESTED;
        if has_room {
            let outer = self.current;
            self.has_word = !self.word.is_empty();
            self.end_word();
            if let Some(command) = self.commands.get_mut(outer) {
                command.has_substituted_name |= command.words.is_empty();
            }
            self.contexts.push(Context::Substitution { close, outer });
            self.commands.push(SimpleCommand { substituted_in: Some(outer), ..SimpleCommand::default() });
            self.current = self.commands.len() - 1;
        }
        has_room
    }

    fn leave(&mut self) {
        self.end_word();
        if let Some(Context::Substitution { outer, .. }) = self.contexts.pop() {
            self.current = outer;
        }
        self.push(UNKNOWN_OUTPUT);
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if std::mem::take(&mut self.has_word) && self.count < MAX_WORDS {
            self.count += 1;
            if let Some(command) = self.commands.get_mut(self.current) {
                command.words.push(word);
            }
        }
    }

    fn end_command(&mut self, is_piped: bool) {
        self.end_word();
        let ended = self.commands.get(self.current);
        if ended.is_some_and(|command| command.words.is_empty()) {
            return;
        }
        let substituted_in = ended.and_then(|command| command.substituted_in);
        self.commands.push(SimpleCommand { is_piped, substituted_in, ..SimpleCommand::default() });
        self.current = self.commands.len() - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        simple_commands(line)
            .iter()
            .filter(|command| !command.words.is_empty())
            .map(|command| format!("{}{}", if command.is_piped { "|" } else { "" }, command.words.join(",")))
            .collect()
    }

    #[test]
    fn lines_are_split_as_a_shell_splits_them() {
        for (line, expected) in [
            ("", &[][..]),
            ("ls -la", &["ls,-la"]),
            ("a|b||c && d; e & f\ng", &["a", "|b", "c", "d", "e", "f", "g"]),
            ("echo 'a; b' \"c | d\"", &["echo,a; b,c | d"]),
            ("r\\m -r\"f\" /", &["rm,-rf,/"]),
            ("cat${IFS}x", &["cat,x"]),
            ("echo ${HOME}/x", &["echo,${HOME}/x"]),
            ("bash -c \"$(curl x)\"", &["bash,-c,\u{fffd}", "curl,x"]),
            ("bash <(curl x) y", &["bash,\u{fffd},y", "curl,x"]),
            ("a `b c` d", &["a,\u{fffd},d", "b,c"]),
            ("x >/dev/sda 2>&1", &["x,>,/dev/sda,2>&1"]),
            ("a \\\n b", &["a,b"]),
            ("echo 'open", &["echo,open"]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
        assert_eq!(simple_commands("bash -c \"$(curl x | y)\"")[2].substituted_in, Some(0));
    }

    #[test]
    fn hostile_lines_are_bounded() {
        for part in ["$(", "`", "\"", "'", "\\", "<(", "a ", "|", "${", "\"$("] {
            simple_commands(&part.repeat(300_000));
        }
    }
}
