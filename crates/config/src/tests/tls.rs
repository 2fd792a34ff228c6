//! TLS toward clients and backends, and what is wrong with it.

use super::super::*;
use super::{good, message};
use signalbox_transport::tls::{BackTlsSpec, ClientCertPolicy, MinVersion, PairFiles};

fn pair(cert_file: &str, key_file: &str) -> PairFiles {
    PairFiles { cert_file: cert_file.into(), key_file: key_file.into() }
}

fn listen(text: &str) -> ListenTls {
    good(&format!("[mcp.protocol.transport.tls]\nenabled = true\n{text}")).listen.tls.expect("TLS")
}

/// Proves G-33.
#[test]
fn the_keys_of_the_governed_configuration_are_taken() {
    let tls = listen("cert_file = '/a.pem'\nkey_file = '/a.key'\nca_file = '/ca.pem'\n");
    assert_eq!(
        tls,
        ListenTls {
            certificates: Certificates::Files(vec![pair("/a.pem", "/a.key")]),
            client_auth: ClientCertPolicy::Required("/ca.pem".into()),
            min_version: MinVersion::V1_2,
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 1024,
        }
    );
    assert!(tls.authenticates());
    assert_eq!(good("[mcp.protocol.transport.tls]\nenabled = false\ncert_file = 'x'\n").listen.tls, None);
}

#[test]
fn everything_else_about_the_listener_is_taken() {
    let files = "cert_file = '/a.pem'\nkey_file = '/a.key'\n";
    let tls = listen(&format!(
        "{files}ca_file = '/ca.pem'\nclient_auth = 'optional'\nmin_version = '1.3'\nhandshake_timeout = 2\nmax_handshakes = 7\n\
         [mcp.protocol.transport.tls.certificates.b]\ncert_file = '/b.pem'\nkey_file = '/b.key'\n"
    ));
    assert_eq!(tls.certificates, Certificates::Files(vec![pair("/a.pem", "/a.key"), pair("/b.pem", "/b.key")]));
    assert_eq!((tls.client_auth.as_str(), tls.min_version), ("optional", MinVersion::V1_3));
    assert_eq!((tls.handshake_timeout, tls.max_handshakes), (Duration::from_secs(2), 7));
    assert_eq!(listen(files).client_auth, ClientCertPolicy::None);
    assert_eq!(
        listen(&format!("{files}ca_file = '/ca.pem'\nclient_auth = 'none'\n")).client_auth,
        ClientCertPolicy::None
    );
    assert_eq!(listen("self_signed = true\n").certificates, Certificates::SelfSigned);
}

#[test]
fn only_a_listener_that_authenticates_may_be_reached_from_elsewhere() {
    let at = |tls: &str| {
        format!(
            "[mcp.protocol.transport]\nhost = '0.0.0.0'\n[mcp.protocol.transport.tls]\nenabled = true\nself_signed = true\n{tls}"
        )
    };
    let host = good(&at("ca_file = 'ca.pem'\n")).listen.host;
    assert!(host.is_unspecified());
    for tls in ["", "ca_file = 'ca.pem'\nclient_auth = 'optional'\n", "ca_file = 'ca.pem'\nclient_auth = 'none'\n"] {
        let message = message("signalbox.toml", &at(tls));
        assert!(message.contains("host: listening beyond loopback needs authentication"), "{message}");
    }
}

#[test]
fn a_backend_with_tls() {
    let text = "[backends.a]\nurl = 'https://h/mcp'\n\
                tls = { ca_file = '/ca.pem', cert_file = '/c.pem', key_file = '/c.key', server_name = 'b.example', min_version = '1.3' }\n\
                [backends.b]\nurl = 'WSS://h/mcp'\n";
    let backends = good(text).backends;
    let tls = |index: usize| match &backends[index].target {
        BackendTarget::Url { tls, .. } => tls.clone(),
        _ => panic!("{:?}", backends[index]),
    };
    let spec = BackTlsSpec {
        ca_file: Some("/ca.pem".into()),
        identity: Some(pair("/c.pem", "/c.key")),
        server_name: Some("b.example".to_owned()),
        min_version: MinVersion::V1_3,
    };
    assert_eq!((tls(0), tls(1)), (spec, BackTlsSpec::default()));
}

#[test]
fn what_is_wrong_is_said() {
    let front = |text: &str| message("signalbox.toml", &format!("[mcp.protocol.transport.tls]\n{text}"));
    for (text, expected) in [
        (
            "enabled = true\n",
            "2:1: mcp.protocol.transport.tls.enabled: needs `cert_file` and `key_file`, or `self_signed = true` for trying it out on this machine",
        ),
        (
            "cert_file = 'a'\n",
            "2:1: mcp.protocol.transport.tls.cert_file: has no effect without `enabled`; set `mcp.protocol.transport.tls.enabled` to true, or to false to keep this for later",
        ),
        (
            "enabled = true\ncert_file = 'a'\n",
            "3:1: mcp.protocol.transport.tls.cert_file: needs a `key_file` beside it",
        ),
        (
            "enabled = true\nself_signed = true\ncert_file = 'a'\nkey_file = 'b'\n",
            "4:1: mcp.protocol.transport.tls.cert_file: cannot be combined with `self_signed`; remove one",
        ),
        (
            "enabled = true\nself_signed = true\nclient_auth = 'required'\n",
            "4:1: mcp.protocol.transport.tls.client_auth: needs a `ca_file` with the authorities that sign clients' certificates",
        ),
        (
            "enabled = true\nself_signed = true\nmin_version = '1.1'\n",
            "4:15: mcp.protocol.transport.tls.min_version: expected `1.2` or `1.3`, found `1.1`",
        ),
        (
            "enabled = true\ncert_file = '~/a'\nkey_file = 'b'\n",
            "3:13: mcp.protocol.transport.tls.cert_file: expected a path with `${HOME}` for `~`, found `~/a`",
        ),
        (
            "enabled = true\ncert_file = 'a'\nkey_file = 'b'\ncertificates.x = {}\n",
            "5:14: mcp.protocol.transport.tls.certificates.x: needs `cert_file` and `key_file`",
        ),
    ] {
        assert_eq!(front(text), format!("signalbox.toml:{expected}"), "{text}");
    }
    for (text, expected) in [
        (
            "url = 'http://h/'\ntls = { ca_file = 'x' }\n",
            "3:1: backends.a.tls: needs an `https://` or `wss://` address in `url`",
        ),
        ("command = 'x'\ntls = { ca_file = 'x' }\n", "3:1: backends.a.tls: applies only with `url`; remove it"),
        (
            "url = 'https://h/'\ntls = { server_name = 'a b' }\n",
            "3:23: backends.a.tls.server_name: expected a host name or an IP address, found `a b`",
        ),
        (
            "url = 'https://h/'\ntls = { insecure = true }\n",
            "3:9: backends.a.tls.insecure: unknown key; expected one of `ca_file`, `cert_file`, `key_file`, `server_name` or `min_version`",
        ),
    ] {
        assert_eq!(message("signalbox.toml", &format!("[backends.a]\n{text}")), format!("signalbox.toml:{expected}"));
    }
}
