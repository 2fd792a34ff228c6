//! Keys and signatures by the command line.

use crate::program::{Done, run};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":1}}}"#;

async fn seal(folder: &Path, line: &str) -> Done {
    let args: Vec<&str> = std::iter::once("seal").chain(line.split(' ')).collect();
    run(folder, &args, "").await
}

async fn good(folder: &Path, line: &str) -> String {
    let done = seal(folder, line).await;
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{line}");
    done.stdout
}

async fn shown(folder: &Path, id: &str) -> Value {
    serde_json::from_str(&good(folder, &format!("keys show {id} --json")).await).unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// Proves PO-13.
#[tokio::test]
async fn keys_are_made_listed_exported_imported_trusted_rotated_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(good(here, "keys list").await.contains("no key is trusted"));
    let made = good(here, "keys new --id ada --name Ada --role client --algorithm eD25519").await;
    assert!(made.contains("Ada") && made.contains("trusted"), "{made}");
    assert_eq!(mode(&here.join("data/seal/private/ada.key")), 0o600);
    assert_eq!(mode(&here.join("data/seal/private")), 0o700);

    for (format, length) in [("pkcs8", 119), ("pkcs8-der", 48), ("seed", 32)] {
        good(here, &format!("keys export ada --format {format} -o {format}")).await;
        let file = here.join(format);
        assert_eq!((std::fs::read(&file).unwrap().len(), mode(&file)), (length, 0o600), "{format}");
        let other = tempfile::tempdir().unwrap();
        let line = format!("keys import {} --id ada --name Ada --json", file.display());
        let imported: Value = serde_json::from_str(&good(other.path(), &line).await).unwrap();
        assert_eq!(imported["public_key"], shown(here, "ada").await["public_key"], "{format}");
    }
    let printed = seal(here, "keys export ada --format seed").await;
    assert_eq!((printed.code, printed.stdout.as_str()), (1, ""), "{}", printed.stderr);

    let other = tempfile::tempdir().unwrap();
    good(here, "keys export ada -o ada.pub").await;
    let public = here.join("ada.pub");
    let line =
        format!("keys trust {} --id ada --name Ada --role client --valid-until 2030-01-01T00:00:00Z", public.display());
    good(other.path(), &line).await;
    assert_eq!(shown(other.path(), "ada").await["private"], json!(false));
    let again = seal(other.path(), &line.replace("--id ada", "--id bob")).await;
    assert!(again.code == 1 && again.stderr.contains("the same key is there"), "{}", again.stderr);

    good(here, "keys rotate ada --new-id ada-2 --overlap 1h").await;
    assert_eq!(shown(here, "ada-2").await["replaces"], "ada");
    assert!(shown(here, "ada").await["valid_until"].is_string());
    assert!(good(here, "keys revoke ada").await.contains("revoked"));
    let listed = good(here, "keys list").await;
    assert!(listed.lines().any(|line| line.starts_with("ada  ") && line.contains("revoked")), "{listed}");

    for (line, expected) in [
        ("keys new --name x --algorithm RSA", "keys and signatures by \"RSA\" are not supported; Ed25519 is"),
        ("keys new --name x --role king", "a key is trusted as"),
        ("keys show nobody", "the key \"nobody\" is not known"),
        ("keys import ada.pub --name x", "a PEM file that holds no `PRIVATE KEY`"),
        ("keys trust pkcs8 --name x", "a private key; give away its public half only"),
        ("keys new --id ../x --name x", "the id of a key"),
    ] {
        let done = seal(here, line).await;
        assert!(done.code != 0 && done.stderr.contains(expected), "{line}: {}", done.stderr);
    }
}

#[tokio::test]
async fn messages_are_signed_in_their_meta_and_checked_with_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::write(here.join("call.json"), CALL).unwrap();
    good(here, "keys new --id ada --name Ada --role client").await;
    assert_eq!(seal(here, "verify call.json").await.code, 5);
    let printed = good(here, "sign call.json --key ada").await;
    let message: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(message["params"]["_meta"]["io.signalbox/signature"]["keyId"], "ada");

    for profile in ["mcp-cbor/1", "mcp-cbor/2"] {
        good(here, &format!("sign call.json --key ada --profile {profile} -o signed.json")).await;
        let valid = good(here, "verify signed.json").await;
        assert!(valid.starts_with("valid: signed for `request` by Ada (ada)"), "{valid}");
    }
    let text = std::fs::read_to_string(here.join("signed.json")).unwrap();
    let changed = |name: &str, from: &str, to: &str| std::fs::write(here.join(name), text.replace(from, to)).unwrap();
    changed("tampered.json", r#""n":1"#, r#""n":2"#);
    changed("algorithm.json", "Ed25519", "RSA");
    changed("lower.json", "Ed25519", "ED25519");
    changed("unknown.json", r#""keyId":"ada""#, r#""keyId":"eve""#);
    for (line, code, reason) in [
        ("verify tampered.json", 1, "tampered"),
        ("verify algorithm.json", 1, "unsupported_algorithm"),
        ("verify unknown.json", 3, "unknown_key"),
        ("verify signed.json --domain response", 1, "signature_malformed"),
        ("verify signed.json --at 2020-01-01T00:00:00Z", 1, "from_the_future"),
        ("verify signed.json --at 2099-01-01T00:00:00Z", 1, "expired"),
        ("verify signed.json --profile mcp-cbor/1", 1, "signature_malformed"),
    ] {
        let done = seal(here, &format!("{line} --json")).await;
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!((done.code, &report["reason"]), (code, &json!(reason)), "{line}: {}", done.stderr);
    }
    assert_eq!(seal(here, "verify lower.json").await.code, 0);
    good(here, "keys export ada -o ada.pub").await;
    assert_eq!(seal(here, "verify signed.json --public-key ada.pub").await.code, 0);
    good(here, "keys revoke ada").await;
    let revoked = seal(here, "verify signed.json").await;
    assert!(revoked.code == 1 && revoked.stdout.contains("was revoked"), "{}", revoked.stdout);
}

#[tokio::test]
async fn any_other_json_is_signed_beside_it_by_the_gateway_itself() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::write(here.join("report.json"), r#"{"b": 1, "a": [true, 0.5]}"#).unwrap();
    assert_eq!(seal(here, "verify report.json").await.code, 5);
    good(here, "sign report.json").await;
    assert_eq!(mode(&here.join("data/seal/signing.key")), 0o600);
    assert!(good(here, "verify report.json").await.starts_with("valid: signed for `audit` by"));
    std::fs::write(here.join("report.json"), r#"{"a":[true,5e-1],"b":1}"#).unwrap();
    assert_eq!(seal(here, "verify report.json").await.code, 0, "another spelling of the same data");
    assert_eq!(seal(here, "verify report.json --domain tape").await.code, 1);
    let elsewhere = tempfile::tempdir().unwrap();
    let line = format!("verify {}", here.join("report.json").display());
    assert_eq!(seal(elsewhere.path(), &line).await.code, 3);
    std::fs::write(here.join("report.json"), r#"{"a":[true,5e-1],"b":1.0}"#).unwrap();
    assert_eq!(seal(here, "verify report.json").await.code, 1);
    assert_eq!(seal(here, "sign report.json --domain hop").await.code, 1);
}
