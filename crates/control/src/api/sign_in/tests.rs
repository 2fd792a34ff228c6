//! Every combination of holder and browser.

use super::*;

/// A browser without any proof, elsewhere, at a gateway without an authorization server of its own.
fn stranger(subject: &str) -> Evidence<'_> {
    Evidence {
        subject,
        proved: None,
        is_admin: false,
        has_visitors: false,
        visitor_is_holder: false,
        is_local: false,
        is_required: true,
        has_server: false,
        can_sign_in: false,
        has_certificate: false,
    }
}

/// How the caller proves itself, against what the browser shows.
#[test]
fn only_the_caller_completes_a_sign_in_whatever_it_proves_itself_with() {
    use Opener::{Holder, Other, Unproved};
    let fresh = Opener::MustSignIn { is_other: false };
    let again = Opener::MustSignIn { is_other: true };
    let local_user = Evidence { has_server: true, can_sign_in: true, ..stranger("user:ada") };
    let local_user_of_an_open_gateway = Evidence { is_required: false, ..local_user };
    let certificate = Evidence { has_certificate: true, ..stranger("cert:ab") };
    let certificate_beside_a_server = Evidence { has_server: true, ..certificate };
    let api_key = stranger("key:ci");
    let api_key_beside_a_server = Evidence { has_server: true, ..api_key };
    let foreign_token = stranger("corp:ada");
    let signature = stranger("agent:7");
    let pipe = stranger("local:ada");
    let anonymous = Evidence { is_required: false, ..stranger("anonymous") };
    let shared = stranger(SHARED_SUBJECT);
    let shared_with_a_server = Evidence { has_server: true, ..shared };
    let shared_and_open = Evidence { is_required: false, ..shared };
    let cases: [(&str, Evidence<'_>, [Opener; 6]); 13] = [
        // A browser that shows: nothing; nothing, from this machine; the holder's own proof; somebody else's proof; a
        // sign-in of the holder; a sign-in of somebody else.
        ("a local user", local_user, [fresh, fresh, Holder, fresh, Holder, again]),
        ("a local user, proofs optional", local_user_of_an_open_gateway, [fresh, fresh, Holder, fresh, Holder, again]),
        ("a certificate", certificate, [Other, Other, Holder, Other, Holder, Other]),
        ("a certificate beside a server", certificate_beside_a_server, [Other, Other, Holder, Other, Holder, Other]),
        ("an API key", api_key, [Unproved, Unproved, Holder, Other, Holder, Other]),
        ("an API key beside a server", api_key_beside_a_server, [Unproved, Unproved, Holder, Other, Holder, Other]),
        ("a token of an issuer", foreign_token, [Unproved, Unproved, Holder, Other, Holder, Other]),
        ("a signature", signature, [Unproved, Unproved, Holder, Other, Holder, Other]),
        ("a pipe", pipe, [Other, Unproved, Holder, Other, Holder, Other]),
        ("nothing", anonymous, [Other, Unproved, Holder, Other, Holder, Other]),
        ("a shared token", shared, [Other, Other, Holder, Other, Holder, Other]),
        ("a shared token and a server", shared_with_a_server, [fresh, fresh, Holder, fresh, Holder, again]),
        ("a shared token, proofs optional", shared_and_open, [Other, Unproved, Holder, Other, Holder, Other]),
    ];
    for (what, evidence, wanted) in cases {
        let own = if evidence.subject == SHARED_SUBJECT { "user:root" } else { evidence.subject };
        let browsers = [
            evidence,
            Evidence { is_local: true, ..evidence },
            Evidence { proved: Some(own), is_admin: evidence.subject == SHARED_SUBJECT, ..evidence },
            Evidence { proved: Some("user:eve"), is_local: true, ..evidence },
            Evidence { has_visitors: true, visitor_is_holder: true, ..evidence },
            Evidence { has_visitors: true, ..evidence },
        ];
        assert_eq!(browsers.map(|browser| judge(&browser)), wanted, "{what}");
    }
}

#[test]
fn an_administrator_signs_in_for_all_callers_but_not_for_one() {
    let admin = Evidence { proved: Some("user:root"), is_admin: true, ..stranger(SHARED_SUBJECT) };
    assert_eq!(judge(&admin), Opener::Holder);
    assert_eq!(judge(&Evidence { subject: "key:ci", ..admin }), Opener::Other);
    assert_eq!(judge(&Evidence { is_admin: false, ..admin }), Opener::Other);
}
