//! Paths that servers were attacked with, and paths that developers use.

use super::*;

fn risk(path: &str) -> Option<FindingRisk> {
    check_path(path).map(|found| found.risk)
}

#[test]
fn paths_of_developers_pass() {
    for path in [
        "",
        ".",
        "./",
        "..",
        "../",
        "src/main.rs",
        "./src/lib.rs",
        "../src/index.ts",
        "../../shared/types.ts",
        "a/../b",
        "src/../test",
        "/srv/docs/../docs/a",
        "/home/ada/project/notes.txt",
        "C:\\Users\\ada\\Documents\\plan.docx",
        "~/Documents/x.md",
        "/tmp/a b (1).txt",
        "docs/100%.md",
        "a%20b.txt",
        "file:///srv/docs/a.txt",
        "./...",
        "src/**/*.rs",
        "R&D/it's.txt",
        "Übersicht.md",
        "文档/说明.md",
        ".env.example",
        ".envrc",
        "/etc/nginx/nginx.conf",
        "a..b",
        "..a/b",
        "a../b",
        "...",
        "notes...",
        "src/[...slug]/page.tsx",
        "app/(group)/page.tsx",
        "a;b/c",
        "/usr/bin/env",
        "env/passwd.md",
        "/etc",
        "id_rsa.pub",
        "docs/etc/passwd.md",
        "/proc",
        "\u{1f600}.png",
        "/workspace/a%2Fb",
        "x/%E4%B8%AD.md",
    ] {
        let is_climbing = path.starts_with("..") && path[2..].chars().next().is_none_or(|next| "/\\".contains(next));
        let expected = is_climbing.then_some(FindingRisk::Low);
        assert_eq!(check_path(path).map(|found| found.risk), expected, "{path}");
    }
}

#[test]
fn paths_that_leave_their_folder_are_found() {
    for path in [
        "../../../x",
        "a/../../x",
        "/../x",
        "/srv/../x",
        "C:\\..\\x",
        "images\\..\\..\\x",
        "/srv/docs/../../x",
        "a.txt::$DATA",
    ] {
        assert_eq!(risk(path), Some(FindingRisk::Medium), "{path}");
    }
    for path in [
        "%2e%2e/x",
        "..%2fx",
        "%252e%252e%252fx",
        "..;/x",
        ".. /x",
        "..\u{200b}/x",
        "..%00/x",
        "....//x",
        "..././x",
        "....\\/x",
        "..%5cx",
        "..%c0%afx",
        "\u{ff0e}\u{ff0e}/x",
        "..\u{2215}x",
        ".\t./x",
        "\"..\"/x",
        "0x2e0x2e/x",
    ] {
        assert_eq!(risk(path), Some(FindingRisk::High), "{path}");
    }
}

#[test]
fn files_with_secrets_are_found() {
    for path in [
        "/etc/shadow",
        "/etc/passwd",
        "../../etc/passwd",
        "../../../../../../etc/hosts",
        "~/.ssh/id_rsa",
        "/home/ada/.ssh/authorized_keys",
        "$HOME/.aws/credentials",
        "C:\\Windows\\System32\\config\\SAM",
        "c:/windows/win.ini",
        "/proc/self/environ",
        "/proc/1/maps",
        "file:///etc/passwd",
        "file:/etc/shadow",
        "FILE://localhost/etc/passwd",
        "file://../../etc/passwd",
        "/etc//passwd",
        "/etc/./shadow",
        "/var/run/docker.sock",
        "/etc/passwd%00.png",
        "/etc/passwd\0.png",
        "%2fetc%2fpasswd",
        "/Users/ada/Library/Keychains/login.keychain-db",
        "C:\\Users\\ada\\NTUSER.DAT",
        "/etc/passwd ",
        "\"/etc/passwd\"",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "..\\..\\..\\windows\\win.ini",
        "/ETC/PASSWD",
        "..%252f..%252fetc%252fpasswd",
    ] {
        assert_eq!(risk(path), Some(FindingRisk::High), "{path}");
    }
    for path in [".env", "app/.env.production", "\\\\server\\share\\x", "\\\\?\\C:\\x", "file://server/share/x"] {
        assert_eq!(risk(path), Some(FindingRisk::Medium), "{path}");
    }
}
