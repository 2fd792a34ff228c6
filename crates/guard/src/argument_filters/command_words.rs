//! Commands and options by what they do, in lower case.

/// Programs that an attacker runs first.
const COMMANDS: &[&str] = &[
    "awk",
    "bash",
    "base64",
    "busybox",
    "bzip2",
    "cat",
    "chmod",
    "chown",
    "cmd",
    "cmd.exe",
    "cp",
    "crontab",
    "csh",
    "curl",
    "dash",
    "dd",
    "del",
    "dig",
    "dir",
    "echo",
    "env",
    "eval",
    "exec",
    "find",
    "ftp",
    "gcc",
    "grep",
    "gzip",
    "head",
    "hostname",
    "id",
    "ifconfig",
    "iptables",
    "java",
    "kill",
    "ksh",
    "less",
    "ln",
    "ls",
    "lua",
    "mail",
    "mkdir",
    "mkfifo",
    "more",
    "mount",
    "mv",
    "nc",
    "ncat",
    "netcat",
    "netstat",
    "nmap",
    "node",
    "nohup",
    "nslookup",
    "od",
    "openssl",
    "perl",
    "php",
    "ping",
    "pkill",
    "powershell",
    "powershell.exe",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "python",
    "python2",
    "python3",
    "reboot",
    "rm",
    "rmdir",
    "rsync",
    "ruby",
    "scp",
    "sed",
    "service",
    "set",
    "sh",
    "shutdown",
    "sleep",
    "socat",
    "ssh",
    "strings",
    "system",
    "passthru",
    "shell_exec",
    "su",
    "sudo",
    "systemctl",
    "tac",
    "tail",
    "tar",
    "tcpdump",
    "tee",
    "telnet",
    "tftp",
    "timeout",
    "touch",
    "type",
    "uname",
    "useradd",
    "vi",
    "vim",
    "wget",
    "whoami",
    "xargs",
    "xxd",
    "zsh",
    "certutil",
    "net",
    "ipconfig",
    "tasklist",
    "systeminfo",
    "calc",
    "calc.exe",
    "iex",
    "iwr",
];
/// Beginnings of options with which well-known programs run other programs.
const DANGEROUS_OPTIONS: [&str; 14] = [
    "--upload-pack",
    "--receive-pack",
    "--exec=",
    "--exec ",
    "-oproxycommand",
    "-o proxycommand",
    "--use-compress-program",
    "--checkpoint-action",
    "--to-command",
    "--rsh=",
    "--config=core.sshcommand",
    "-ccore.",
    "-c core.",
    "--open-files-in-pager",
];

const INTERPRETERS: [&str; 25] = [
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "ash",
    "csh",
    "tcsh",
    "fish",
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "pwsh",
    "powershell",
    "iex",
    "invoke-expression",
    "osascript",
    "bun",
    "deno",
    "cmd",
];
const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "csh", "tcsh", "fish"];
const DOWNLOADERS: [&str; 12] = [
    "curl",
    "wget",
    "fetch",
    "iwr",
    "irm",
    "invoke-webrequest",
    "invoke-restmethod",
    "lwp-request",
    "aria2c",
    "lynx",
    "http",
    "telnet",
];
/// Programs that send their input elsewhere.
const SENDERS: [&str; 11] = ["curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "scp", "ftp", "mail", "sendmail"];

/// Returns `true` for a program that an attacker appends to a value.
pub(super) fn is_command_word(word: &str) -> bool {
    COMMANDS.contains(&word)
}

/// Returns `true` for an option with which a program runs another one.
pub(super) fn is_dangerous_option(word: &str) -> bool {
    DANGEROUS_OPTIONS.iter().any(|option| word.starts_with(option))
}

pub(super) fn is_interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&word)
}

pub(super) fn is_shell(word: &str) -> bool {
    SHELLS.contains(&word)
}

pub(super) fn is_downloader(word: &str) -> bool {
    DOWNLOADERS.contains(&word)
}

pub(super) fn is_sender(word: &str) -> bool {
    SENDERS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_and_listed_once() {
        let mut all = COMMANDS.to_vec();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), COMMANDS.len());
        for list in [COMMANDS, &DANGEROUS_OPTIONS, &INTERPRETERS, &SHELLS, &DOWNLOADERS, &SENDERS] {
            assert!(list.iter().all(|word| !word.contains(char::is_uppercase)), "{list:?}");
        }
        assert!(SHELLS.iter().all(|shell| is_interpreter(shell)));
    }
}
