//! Files whose content is worth stealing, or that control a machine.

use super::finding::FindingRisk;
use FindingRisk::{High, Medium};

/// Pattern of paths.
///
/// A pattern with a leading slash starts at the root, others match anywhere. One with a trailing slash means everything
/// below a folder, others mean the last segments of a path. `*` is any segment.
pub(super) struct SensitivePath {
    pattern: &'static str,
    pub risk: FindingRisk,
    pub reason: &'static str,
}

const SYSTEM: &str = "file with the accounts or the configuration of the system";
const PROCESS: &str = "file of the kernel or of a process";
const KEYS: &str = "file with private keys or credentials";
const HISTORY: &str = "file with what a user typed or visited";

const fn entry(pattern: &'static str, risk: FindingRisk, reason: &'static str) -> SensitivePath {
    SensitivePath { pattern, risk, reason }
}

static SENSITIVE_PATHS: &[SensitivePath] = &[
    entry("etc/passwd", High, SYSTEM),
    entry("etc/shadow", High, SYSTEM),
    entry("etc/shadow-", High, SYSTEM),
    entry("etc/gshadow", High, SYSTEM),
    entry("/etc/master.passwd", High, SYSTEM),
    entry("/etc/sudoers", High, SYSTEM),
    entry("/etc/sudoers.d/", High, SYSTEM),
    entry("/etc/crontab", High, SYSTEM),
    entry("/etc/cron.d/", High, SYSTEM),
    entry("/etc/ld.so.preload", High, SYSTEM),
    entry("/etc/ssh/", Medium, SYSTEM),
    entry("/etc/ssl/private/", High, KEYS),
    entry("/etc/kubernetes/", High, KEYS),
    entry("/etc/hosts", Medium, SYSTEM),
    entry("/etc/group", Medium, SYSTEM),
    entry("/etc/issue", Medium, SYSTEM),
    entry("/private/etc/", Medium, SYSTEM),
    entry("/boot/", Medium, SYSTEM),
    entry("/var/spool/cron/", High, SYSTEM),
    entry("/var/log/auth.log", High, SYSTEM),
    entry("/var/log/secure", High, SYSTEM),
    entry("/proc/", High, PROCESS),
    entry("/sys/", Medium, PROCESS),
    entry("/dev/mem", High, PROCESS),
    entry("/dev/kmem", High, PROCESS),
    entry("/dev/sda", High, PROCESS),
    entry("/dev/tcp/", High, PROCESS),
    entry("var/run/docker.sock", High, PROCESS),
    entry("run/docker.sock", High, PROCESS),
    entry("/run/secrets/", High, KEYS),
    entry("/var/run/secrets/", High, KEYS),
    entry(".ssh/", High, KEYS),
    entry(".ssh", High, KEYS),
    entry("id_rsa", High, KEYS),
    entry("id_dsa", High, KEYS),
    entry("id_ecdsa", High, KEYS),
    entry("id_ed25519", High, KEYS),
    entry(".gnupg/", High, KEYS),
    entry(".aws/", High, KEYS),
    entry(".azure/", High, KEYS),
    entry(".kube/config", High, KEYS),
    entry(".docker/config.json", High, KEYS),
    entry(".config/gcloud/", High, KEYS),
    entry(".config/gh/hosts.yml", High, KEYS),
    entry(".git-credentials", High, KEYS),
    entry(".netrc", High, KEYS),
    entry("_netrc", High, KEYS),
    entry(".pgpass", High, KEYS),
    entry(".my.cnf", High, KEYS),
    entry(".npmrc", Medium, KEYS),
    entry(".pypirc", High, KEYS),
    entry(".htpasswd", High, KEYS),
    entry(".vault-token", High, KEYS),
    entry(".terraform.d/credentials.tfrc.json", High, KEYS),
    entry(".cargo/credentials", High, KEYS),
    entry(".cargo/credentials.toml", High, KEYS),
    entry(".env", Medium, KEYS),
    entry(".env.local", Medium, KEYS),
    entry(".env.production", Medium, KEYS),
    entry(".env.prod", Medium, KEYS),
    entry(".env.staging", Medium, KEYS),
    entry(".env.development", Medium, KEYS),
    entry(".bash_history", High, HISTORY),
    entry(".zsh_history", High, HISTORY),
    entry(".mysql_history", High, HISTORY),
    entry(".psql_history", High, HISTORY),
    entry(".python_history", High, HISTORY),
    entry("library/keychains/", High, KEYS),
    entry("login data", High, HISTORY),
    entry("cookies.sqlite", High, HISTORY),
    entry("logins.json", High, KEYS),
    entry("claude_desktop_config.json", High, KEYS),
    entry("windows/system32/config/", High, SYSTEM),
    entry("winnt/system32/config/", High, SYSTEM),
    entry("windows/system32/drivers/etc/", Medium, SYSTEM),
    entry("windows/repair/", High, SYSTEM),
    entry("windows/win.ini", High, SYSTEM),
    entry("windows/system.ini", High, SYSTEM),
    entry("winnt/win.ini", High, SYSTEM),
    entry("windows/ntds/", High, SYSTEM),
    entry("windows/panther/", High, SYSTEM),
    entry("windows/system32/cmd.exe", High, SYSTEM),
    entry("/boot.ini", High, SYSTEM),
    entry("boot.ini", Medium, SYSTEM),
    entry("ntuser.dat", High, SYSTEM),
    entry("web-inf/web.xml", Medium, SYSTEM),
    entry("inetpub/", Medium, SYSTEM),
    entry("microsoft/credentials/", High, KEYS),
    entry("microsoft/protect/", High, KEYS),
];

/// Returns the entry that a resolved path matches. `anchored` is set if the first segment is one of the root folder.
pub(super) fn sensitive_path(segments: &[&str], anchored: bool) -> Option<&'static SensitivePath> {
    let names: Vec<String> = segments.iter().map(|segment| file_name(segment)).collect();
    SENSITIVE_PATHS.iter().find(|entry| matches(entry.pattern, &names, anchored))
}

/// Returns the name under which a system opens a segment: Windows drops trailing dots, spaces and the default stream,
/// and C programs stop at a NUL.
fn file_name(segment: &str) -> String {
    let name = segment.split('\0').next().unwrap_or_default();
    let name = name.split("::$").next().unwrap_or_default();
    name.trim_matches(|char: char| char.is_whitespace() || char.is_control() || matches!(char, '"' | '\'' | '`'))
        .trim_end_matches(['.', ' '])
        .to_lowercase()
}

fn matches(pattern: &str, names: &[String], anchored: bool) -> bool {
    let is_rooted = pattern.starts_with('/');
    let is_folder = pattern.ends_with('/');
    let wanted: Vec<&str> = pattern.trim_matches('/').split('/').collect();
    let fits = |window: &[String]| window.iter().zip(&wanted).all(|(name, wanted)| *wanted == "*" || name == wanted);
    let mut windows = names.windows(wanted.len()).enumerate();
    windows.any(|(start, window)| {
        let ends = start + wanted.len() == names.len();
        (!is_rooted || (anchored && start == 0)) && (is_folder != ends) && fits(window)
    })
}
