//! Commands that no agent has to run: downloaded programs, reverse shells, removal of everything.
//!
//! A shell tool is there to run commands, so that operators and substitutions are no finding here.

use super::command_words::{is_downloader, is_interpreter, is_sender, is_shell};
use super::finding::{FilterKind, FindingRisk, Violation};
use super::path_filter::check_path;
use super::shell_lexer::{SimpleCommand, UNKNOWN_OUTPUT, simple_commands};
use std::collections::HashSet;

/// Maximum number of scripts within scripts: `sh -c "sh -c …"`.
const MAX_SCRIPTS: usize = 3;
/// Words in front of a command that are not the command.
const WRAPPERS: [&str; 16] = [
    "sudo", "nohup", "exec", "time", "env", "xargs", "then", "do", "else", "!", "{", "command", "builtin", "stdbuf",
    "setsid", "doas",
];
/// Targets of `rm -r` that are more than a project.
const WHOLE: [&str; 26] = [
    "/",
    "/*",
    "/.",
    "/.*",
    "~",
    "~/",
    "~/*",
    "$home",
    "$home/",
    "$home/*",
    "${home}",
    "${home}/",
    "${home}/*",
    "/etc",
    "/usr",
    "/var",
    "/home",
    "/home/*",
    "/bin",
    "/boot",
    "/lib",
    "/root",
    "/dev",
    "/opt",
    "c:\\",
    "c:/",
];

fn shell(reason: &'static str) -> Option<Violation> {
    Some(Violation::new(FilterKind::Shell, FindingRisk::High, reason))
}

/// Checks a command line.
pub(super) fn check_command(line: &str) -> Option<Violation> {
    check_script(line, MAX_SCRIPTS)
}

fn check_script(line: &str, depth: usize) -> Option<Violation> {
    let compact: String = line.chars().filter(|char| !char.is_whitespace()).collect();
    if is_fork_bomb(&compact) {
        return shell("command that starts copies of itself without end");
    }
    let commands = simple_commands(line);
    let calls: Vec<Call<'_>> = commands.iter().map(Call::of).collect();
    let single = calls.iter().find_map(Call::check);
    let found = single.or_else(|| check_downloads(&commands, &calls)).or_else(|| check_leaks(&commands, &calls));
    found.or_else(|| {
        let scripts = calls.iter().filter(|_| depth > 0).filter_map(Call::script);
        scripts.into_iter().find_map(|script| check_script(&script, depth - 1))
    })
}

/// Command by its program, in lower case.
struct Call<'a> {
    program: String,
    words: &'a [String],
}

impl<'a> Call<'a> {
    fn of(command: &'a SimpleCommand) -> Self {
        let is_skipped = |word: &String| {
            let lower = word.to_lowercase();
            let assigns = word
                .split_once('=')
                .is_some_and(|(name, _)| name.chars().all(|char| char.is_alphanumeric() || char == '_'));
            WRAPPERS.contains(&lower.as_str()) || assigns
        };
        let mut start = command.words.iter().take_while(|word| is_skipped(word)).count();
        // Options of a wrapper: `sudo -n`, `xargs -I{}`.
        if start > 0 {
            start += command.words.iter().skip(start).take_while(|word| word.starts_with('-')).count();
        }
        let words = command.words.get(start..).unwrap_or_default();
        let name = words.first().map(|word| word.to_lowercase()).unwrap_or_default();
        let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
        Self { program: name.strip_suffix(".exe").unwrap_or(name).to_owned(), words }
    }

    fn arguments(&self) -> impl Iterator<Item = &'a str> {
        self.words.iter().skip(1).map(String::as_str)
    }

    fn has(&self, wanted: impl Fn(&str) -> bool) -> bool {
        self.arguments().any(wanted)
    }

    /// Returns the script that this command runs, if it is one of its words.
    fn script(&self) -> Option<String> {
        let after =
            |option: &dyn Fn(&str) -> bool| self.arguments().skip_while(|word| !option(word)).nth(1).map(str::to_owned);
        match self.program.as_str() {
            shell if is_shell(shell) => {
                after(&|word| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'))
            }
            "cmd" => after(&|word| word.eq_ignore_ascii_case("/c") || word.eq_ignore_ascii_case("/k")),
            "powershell" | "pwsh" => after(&|word| word.to_lowercase().starts_with("-c")),
            "eval" | "ssh" | "su" | "watch" | "timeout" => Some(self.arguments().collect::<Vec<_>>().join(" ")),
            _ => None,
        }
    }

    fn check(&self) -> Option<Violation> {
        // Scripts wait for their own server in this way.
        let is_local = |rest: &str| rest.starts_with("127.") || rest.starts_with("localhost/");
        let connects = |word: &str| {
            let parts = word.split_once("/dev/tcp/").or_else(|| word.split_once("/dev/udp/"));
            parts.is_some_and(|(_, rest)| !is_local(rest))
        };
        if self.has(connects) || self.opens_shell() {
            return shell("command that gives another machine a shell");
        }
        if self.removes_everything() {
            return shell("command that removes everything");
        }
        if self.fetches_program() {
            return shell("command that runs a program from the network");
        }
        None
    }

    fn opens_shell(&self) -> bool {
        let joined = || self.arguments().collect::<Vec<_>>().join(" ").to_lowercase();
        match self.program.as_str() {
            "nc" | "ncat" | "netcat" => self.has(|word| {
                let short =
                    word.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains(['e', 'c']));
                short || word.starts_with("--exec") || word.starts_with("--sh-exec")
            }),
            "socat" => {
                self.has(|word| word.to_lowercase().starts_with("exec:") || word.to_lowercase().starts_with("system:"))
            }
            interpreter if is_interpreter(interpreter) && !is_shell(interpreter) => {
                let code = joined();
                let connects = ["socket", "tcpsocket", "fsockopen", "net.connect", "createconnection", "tcpclient"]
                    .iter()
                    .any(|name| code.contains(name));
                let executes = [
                    "dup2",
                    "pty.spawn",
                    "/bin/sh",
                    "/bin/bash",
                    "subprocess",
                    "exec(",
                    "exec ",
                    "spawn(",
                    "proc_open",
                    "iex",
                    "cmd.exe",
                    "getstream",
                ]
                .iter()
                .any(|name| code.contains(name));
                connects && executes
            }
            _ => false,
        }
    }

    fn removes_everything(&self) -> bool {
        let is_device = |word: &str| {
            ["/dev/sd", "/dev/nvme", "/dev/hd", "/dev/vd", "/dev/mmcblk", "/dev/disk", "\\\\.\\physicaldrive"]
                .iter()
                .any(|device| word.starts_with(device))
        };
        let is_whole = |word: &str| {
            let lower = word.to_lowercase();
            let plain = if lower.len() > 1 { lower.trim_end_matches('/') } else { &lower };
            WHOLE.contains(&lower.as_str()) || (!plain.is_empty() && WHOLE.contains(&plain))
        };
        let is_flag =
            |word: &str, flags: &[char]| word.starts_with('-') && !word.starts_with("--") && word.contains(flags);
        let to_device = self
            .arguments()
            .collect::<Vec<_>>()
            .windows(2)
            .any(|two| matches!(two, [">" | ">>", device] if is_device(device)));
        to_device
            || match self.program.as_str() {
                "rm" => {
                    self.has(|word| word == "--no-preserve-root")
                        || ((self.has(|word| is_flag(word, &['r', 'R'])) || self.has(|word| word == "--recursive"))
                            && self.has(is_whole))
                }
                "dd" => self.has(|word| word.strip_prefix("of=").is_some_and(is_device)),
                "shred" | "wipefs" | "blkdiscard" => self.has(is_device),
                "chmod" | "chown" | "chgrp" => {
                    self.has(|word| is_flag(word, &['R']))
                        && self.has(|word| matches!(word, "/" | "/*" | "/etc" | "/usr"))
                }
                "find" => self.words.get(1).is_some_and(|root| is_whole(root)) && self.has(|word| word == "-delete"),
                "format" => self.has(|word| word.to_lowercase().starts_with("c:")),
                "del" | "rd" | "rmdir" | "erase" => {
                    self.has(|word| word.eq_ignore_ascii_case("/s"))
                        && self.has(|word| {
                            matches!(word.to_lowercase().as_str(), "c:" | "c:*" | "c:\\" | "c:\\*" | "c:\\*.*" | "c:/")
                        })
                }
                "mv" => {
                    self.words.get(1).is_some_and(|root| matches!(root.as_str(), "/" | "/*" | "~" | "~/*"))
                        && self.words.last().is_some_and(|target| target == "/dev/null")
                }
                program => program.starts_with("mkfs"),
            }
    }

    fn fetches_program(&self) -> bool {
        let has_web = || self.has(|word| word.to_lowercase().contains("http"));
        match self.program.as_str() {
            "powershell" | "pwsh" => {
                let code = self.arguments().collect::<Vec<_>>().join(" ").to_lowercase();
                let encoded = self.has(|word| {
                    word.len() > 1
                        && "-encodedcommand".starts_with(&word.to_lowercase())
                        && word.to_lowercase().starts_with("-e")
                        && !word.eq_ignore_ascii_case("-ex")
                });
                let loads = [
                    "downloadstring",
                    "downloadfile",
                    "downloaddata",
                    "iwr",
                    "irm",
                    "invoke-webrequest",
                    "invoke-restmethod",
                ]
                .iter()
                .any(|name| code.contains(name));
                encoded
                    || (loads && ["iex", "invoke-expression", "start-process"].iter().any(|name| code.contains(name)))
            }
            "certutil" => self.has(|word| word.to_lowercase().ends_with("urlcache")),
            "mshta" | "bitsadmin" => has_web(),
            "regsvr32" => self.has(|word| word.to_lowercase().starts_with("/i:http")),
            "rundll32" => self.has(|word| word.to_lowercase().starts_with("javascript:")),
            "python" | "python3" | "perl" | "ruby" | "node" | "php" => {
                let code = self.arguments().collect::<Vec<_>>().join(" ").to_lowercase();
                [
                    "exec(urllib",
                    "exec(requests.get",
                    "exec(__import__('urllib",
                    "eval(file_get_contents('http",
                    "eval(requests.get",
                ]
                .iter()
                .any(|name| code.replace(' ', "").contains(name))
            }
            _ => false,
        }
    }

    /// Returns `true` if the command runs the program that it reads from its input.
    fn runs_input(&self) -> bool {
        if !is_interpreter(&self.program) && self.program != "source" && self.program != "." {
            return false;
        }
        match is_shell(&self.program) {
            true => {
                self.arguments()
                    .all(|word| word.starts_with(['-', '>', '2', '/']) || self.has(|word| word == "-s" || word == "-"))
                    && !self.has(|word| word == "-c")
            }
            false => {
                self.arguments().next().is_none_or(|word| matches!(word, "-" | "-Command" | "-command" | "/dev/stdin"))
            }
        }
    }

    /// Returns `true` if the command runs its words, or a file that they name.
    fn runs_words(&self) -> bool {
        let is_script = |word: &str| word.starts_with([UNKNOWN_OUTPUT, '-']);
        matches!(self.program.as_str(), "eval" | "source" | ".")
            || (is_interpreter(&self.program) && self.arguments().next().is_none_or(is_script))
    }

    fn decodes(&self) -> bool {
        match self.program.as_str() {
            "base64" | "base32" => self.has(|word| matches!(word, "-d" | "-D" | "--decode" | "-di")),
            "xxd" => self.has(|word| word.starts_with("-r") || word == "-p"),
            "openssl" => self.has(|word| word == "-d"),
            _ => false,
        }
    }

    /// Returns the file to which a downloader writes.
    fn output(&self) -> Option<&'a str> {
        let is_option = |word: &&str| {
            matches!(*word, "-o" | "-O" | "--output" | "--output-document" | "-outfile" | "-OutFile" | ">")
        };
        let named = self.arguments().skip_while(|word| !is_option(word)).nth(1);
        let last =
            || self.arguments().filter(|word| word.contains("://")).last().and_then(|url| url.rsplit('/').next());
        is_downloader(&self.program)
            .then(|| named.filter(|name| !name.contains("://")).or_else(last))?
            .filter(|name| !name.is_empty())
    }
}

/// Finds programs that are downloaded, or decoded, and run: through a pipe, a substitution or a file.
fn check_downloads(commands: &[SimpleCommand], calls: &[Call<'_>]) -> Option<Violation> {
    const REASON: &str = "command that runs a program from the network";
    let mut carries = false;
    let mut files: HashSet<&str> = HashSet::new();
    let name = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut names: HashSet<String> = HashSet::new();
    for (command, call) in commands.iter().zip(calls) {
        let brings = is_downloader(&call.program) || call.decodes();
        if carries && command.is_piped && call.runs_input() {
            return shell(REASON);
        }
        carries = brings || (carries && command.is_piped);
        let outer = command.substituted_in.and_then(|outer| calls.get(outer));
        let names_outer = command
            .substituted_in
            .and_then(|outer| commands.get(outer))
            .is_some_and(|outer| outer.has_substituted_name);
        if brings && (names_outer || outer.is_some_and(Call::runs_words)) {
            return shell(REASON);
        }
        let runs = call.words.first().is_some_and(|word| word.contains('/') && names.contains(&name(word)));
        let interprets = (is_interpreter(&call.program) || matches!(call.program.as_str(), "source" | "."))
            && call.has(|word| files.contains(word) || names.contains(&name(word)));
        if runs || interprets {
            return shell(REASON);
        }
        if let Some(file) = call.output() {
            files.insert(file);
            names.insert(name(file));
        }
    }
    None
}

/// Finds files with secrets that are sent to another machine.
fn check_leaks(commands: &[SimpleCommand], calls: &[Call<'_>]) -> Option<Violation> {
    const REASON: &str = "command that sends a file with secrets to another machine";
    let is_secret = |word: &str| {
        let path = word.rsplit_once('@').map_or(word, |(_, path)| path);
        let is_path =
            path.len() < 512 && (path.starts_with(['/', '~', '.']) || path.to_lowercase().starts_with("$home"));
        is_path
            && check_path(path)
                .is_some_and(|found| found.risk >= FindingRisk::Medium && found.reason.starts_with("file with"))
    };
    let mut carries = false;
    for (command, call) in commands.iter().zip(calls) {
        let sends = is_sender(&call.program);
        if sends && carries && command.is_piped {
            return shell(REASON);
        }
        let has_secret = call.has(is_secret);
        // `ssh -i` and `scp -i` name the key with which they sign in, and `curl -o` writes.
        let uploads = matches!(call.program.as_str(), "curl" | "wget" | "nc" | "ncat" | "netcat");
        let writes = call.output().is_some_and(is_secret);
        if has_secret && uploads && !writes {
            return shell(REASON);
        }
        let outer = command.substituted_in.and_then(|outer| calls.get(outer));
        if has_secret && outer.is_some_and(|outer| uploads_data(outer)) {
            return shell(REASON);
        }
        carries = has_secret || (carries && command.is_piped);
    }
    None
}

fn uploads_data(call: &Call<'_>) -> bool {
    matches!(call.program.as_str(), "curl" | "wget" | "nslookup" | "dig" | "ping")
}

/// Returns `true` for `name(){name|name&};name`, without spaces.
fn is_fork_bomb(compact: &str) -> bool {
    let mut rest = compact;
    while let Some((before, after)) = rest.split_once("(){") {
        let start = before.rfind([';', '{', '}', '|', '&', '\'', '"', '(']).map_or(0, |at| at + 1);
        let name = before.get(start..).unwrap_or_default();
        if !name.is_empty()
            && name.len() < 32
            && after
                .strip_prefix(name)
                .and_then(|after| after.strip_prefix('|'))
                .is_some_and(|after| after.starts_with(name))
        {
            return true;
        }
        rest = after;
    }
    compact.contains("%0|%0")
}

#[cfg(test)]
mod tests;
