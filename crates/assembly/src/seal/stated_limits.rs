//! Purpose, permissions and limits that a request states itself, for full validation (PO-16).

use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::rate::Rate;
use signalbox_engine::{Fault, FaultKind};
use signalbox_seal::McpRequest;
use signalbox_seal::proto::{Action, PurposeCategory};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Caller claim that names the purpose of its request.
pub const PURPOSE_CLAIM: &str = "purpose";
/// Caller claim that lists the permissions of its request.
pub const PERMISSIONS_CLAIM: &str = "permissions";
/// Maximum length of a claim in characters.
const MAX_CLAIM: usize = 1_024;
/// Maximum number of counters. Beyond it, counters with a full bucket are dropped first, then all.
const MAX_COUNTED: usize = 10_000;
const HOUR: Duration = Duration::from_secs(3_600);

/// Counts the use of each permission by each signer, against the `max_frequency_per_hour` that its requests state.
#[derive(Debug, Default)]
pub struct StatedLimits {
    full: Mutex<HashMap<Box<str>, Instant>>,
}

impl StatedLimits {
    /// Counts a request of this principal.
    ///
    /// # Errors
    /// If the request uses a permission more often than it stated.
    pub fn take(&self, principal: &str, request: &McpRequest, now: Instant) -> Result<(), Fault> {
        for permission in &request.permissions {
            let limit = permission.permission_specification.as_ref().map_or(0, |bounds| bounds.max_frequency_per_hour);
            if limit == 0 {
                continue;
            }
            let resource = &permission.resource_identifier;
            let key = format!("{principal}\n{resource}\n{}", permission.requested_action);
            let mut all = self.full.lock().unpoisoned();
            if all.len() >= MAX_COUNTED && !all.contains_key(key.as_str()) {
                all.retain(|_, full| *full > now);
                if all.len() >= MAX_COUNTED {
                    all.clear();
                }
            }
            let rate = Rate { limit: u64::from(limit), per: HOUR };
            match rate.take(all.get(key.as_str()).copied(), now) {
                Ok(full) => all.insert(key.into(), full),
                Err(wait) => return Err(too_often(resource, limit, wait)),
            };
        }
        Ok(())
    }
}

fn too_often(resource: &str, limit: u32, wait: Duration) -> Fault {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let resource: String = resource.chars().take(100).collect();
    let text = format!("the request states that it uses {resource:?} at most {limit} times in an hour");
    Fault::new(FaultKind::RateLimited, text)
        .with_str("limit", "max_frequency_per_hour")
        .with_raw("retryAfter", seconds.to_string())
}

/// Returns the purpose and permissions that a request states, as claims of its caller.
pub fn purpose_claims(request: &McpRequest) -> Vec<(Box<str>, Box<str>)> {
    let mut claims = Vec::new();
    if let Some(purpose) = &request.purpose_dna {
        let category = PurposeCategory::try_from(purpose.primary_category).unwrap_or_default().as_str_name();
        let category = category.trim_start_matches("PURPOSE_CATEGORY_").to_ascii_lowercase();
        claims.push((PURPOSE_CLAIM.into(), claim(&format!("{category}: {}", purpose.purpose_id))));
    }
    let permissions: Vec<String> = request
        .permissions
        .iter()
        .map(|permission| {
            let action = Action::try_from(permission.requested_action).unwrap_or_default().as_str_name();
            let action = action.trim_start_matches("ACTION_").to_ascii_lowercase();
            let bounds = permission.permission_specification.as_ref();
            let often = bounds.map(|bounds| bounds.max_frequency_per_hour).filter(|often| *often > 0);
            let often = often.map(|often| format!(" {often}/h")).unwrap_or_default();
            format!("{action}:{}{often}", permission.resource_identifier)
        })
        .collect();
    claims.push((PERMISSIONS_CLAIM.into(), claim(&permissions.join(", "))));
    claims
}

fn claim(text: &str) -> Box<str> {
    text.chars().take(MAX_CLAIM).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_seal::proto::PermissionSpecification;
    use signalbox_seal::{Permission, PurposeDna};

    fn request(limit: u32) -> McpRequest {
        let bounds = PermissionSpecification { max_frequency_per_hour: limit, ..Default::default() };
        McpRequest {
            purpose_dna: Some(PurposeDna {
                purpose_id: "p-1".to_owned(),
                primary_category: PurposeCategory::Analytics.into(),
                ..Default::default()
            }),
            permissions: vec![Permission {
                resource_identifier: "mail".to_owned(),
                requested_action: Action::Read.into(),
                permission_specification: Some(bounds),
            }],
            ..Default::default()
        }
    }

    /// The frequency that a request states is kept, for each signer by itself.
    /// Proves PO-16.
    #[test]
    fn a_signer_uses_a_permission_as_often_as_it_states() {
        let (limits, start) = (StatedLimits::default(), Instant::now());
        for _ in 0..2 {
            limits.take("ada", &request(2), start).unwrap();
        }
        let fault = limits.take("ada", &request(2), start).unwrap_err();
        assert_eq!(fault.kind, FaultKind::RateLimited);
        assert!(fault.data.iter().any(|(name, value)| *name == "retryAfter" && &**value == b"1800"), "{fault:?}");
        limits.take("bob", &request(2), start).unwrap();
        limits.take("ada", &request(2), start + Duration::from_secs(1_800)).unwrap();
        limits.take("ada", &request(0), start).unwrap();
    }

    #[test]
    fn purpose_and_permissions_become_claims() {
        let claims = purpose_claims(&request(7));
        let expected = [("purpose", "analytics: p-1"), ("permissions", "read:mail 7/h")];
        assert_eq!(claims, expected.map(|(name, value)| (name.into(), value.into())));
    }
}
