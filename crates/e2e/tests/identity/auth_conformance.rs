//! The authorization scenarios of the public conformance runner: the gateway is the client of the runner's servers.
//!
//! The page `docs/backend-auth-conformance.md` lists the scenarios that do not pass, with reasons. The test fails if a
//! failing scenario is missing there, or if a listed one passes.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants, and says what it counted")]

use signalbox_testkit::clients::run_script;
use signalbox_testkit::conformance::{Runner, Status};
use signalbox_testkit::process::built;
use std::collections::BTreeMap;
use std::path::Path;

/// Every scenario, with the revision that it is run for.
const SCENARIOS: &[(&str, &str)] = &[
    ("auth/metadata-default", "2026-07-28"),
    ("auth/metadata-var1", "2026-07-28"),
    ("auth/metadata-var2", "2026-07-28"),
    ("auth/metadata-var3", "2026-07-28"),
    ("auth/basic-cimd", "2026-07-28"),
    ("auth/scope-from-www-authenticate", "2026-07-28"),
    ("auth/scope-from-scopes-supported", "2026-07-28"),
    ("auth/scope-omitted-when-undefined", "2026-07-28"),
    ("auth/scope-step-up", "2026-07-28"),
    ("auth/scope-step-up", "2025-11-25"),
    ("auth/scope-retry-limit", "2026-07-28"),
    ("auth/token-endpoint-auth-basic", "2026-07-28"),
    ("auth/token-endpoint-auth-post", "2026-07-28"),
    ("auth/token-endpoint-auth-none", "2026-07-28"),
    ("auth/pre-registration", "2026-07-28"),
    ("auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26"),
    ("auth/2025-03-26-oauth-endpoint-fallback", "2025-03-26"),
    ("auth/resource-mismatch", "2026-07-28"),
    ("auth/offline-access-scope", "2026-07-28"),
    ("auth/offline-access-not-supported", "2026-07-28"),
    ("auth/authorization-server-migration", "2026-07-28"),
    ("auth/iss-supported", "2026-07-28"),
    ("auth/iss-not-advertised", "2026-07-28"),
    ("auth/iss-supported-missing", "2026-07-28"),
    ("auth/iss-wrong-issuer", "2026-07-28"),
    ("auth/iss-unexpected", "2026-07-28"),
    ("auth/iss-normalized", "2026-07-28"),
    ("auth/metadata-issuer-mismatch", "2026-07-28"),
    ("auth/client-credentials-jwt", ""),
    ("auth/client-credentials-basic", ""),
    ("auth/enterprise-managed-authorization", ""),
    ("auth/dpop", ""),
    ("auth/dpop-nonce", ""),
    ("auth/wif-jwt-bearer", ""),
];

/// The scenarios on the page, each with its reason.
fn on_the_page() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backend-auth-conformance.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `auth/"));
    let rows = rows.filter_map(|row| row.split_once("` | "));
    rows.map(|(name, reason)| (format!("auth/{name}"), reason.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_is_a_good_oauth_client() {
    let Some(runner) = Runner::installed("conformance-0.2").unwrap() else { return };
    let client = format!("{} auth-client {}", run_script().display(), built("signalbox").unwrap().display());
    let known = on_the_page();
    let mut unlike = Vec::new();
    let mut checks = 0;
    // Some at a time: each starts a gateway, two or three servers of the runner and two programs of Node.
    for some in SCENARIOS.chunks(4) {
        let (runner, client) = (&runner, &client);
        let judged = some.iter().map(|(scenario, revision)| async move {
            let verdict = runner.judge_scenario(client, scenario, revision).await.unwrap();
            let mut bad = verdict.verdict.with_status(Status::Failure);
            bad.extend(verdict.verdict.with_status(Status::Warning));
            (scenario, revision, verdict.verdict.count(Status::Success), bad, verdict.complaint.unwrap_or_default())
        });
        for (scenario, revision, good, bad, complaint) in futures_util::future::join_all(judged).await {
            println!("{scenario} {revision}: {good} checks passed, {} not", bad.len());
            checks += good;
            match (bad.is_empty() && good > 0, known.contains_key(*scenario)) {
                (true, false) | (false, true) => {}
                (true, true) => unlike.push(format!("{scenario} passes, but is on the page")),
                (false, false) => unlike.push(format!("{scenario} {revision}:\n{}\n{complaint}", bad.join("\n"))),
            }
        }
    }
    assert!(checks > 200, "the runner checked next to nothing: {checks}");
    assert!(unlike.is_empty(), "{} scenarios are unlike the page:\n{}", unlike.len(), unlike.join("\n"));
}
