//! Semantic validation: the permissions of a request must match its purpose.

use super::validation_error::SemanticsError;
use crate::proto::{Action, McpRequest, Permission, PermissionSpecification, PurposeCategory, PurposeDna};

/// Default maximum for the hourly use of a permission.
pub const MAX_FREQUENCY_PER_HOUR: u32 = 1_000;
const SCOPES: [&str; 3] = ["personal", "aggregated", "anonymized"];

/// Returns the actions that a purpose category allows.
#[must_use]
pub fn allowed_actions(category: PurposeCategory) -> &'static [Action] {
    match category {
        PurposeCategory::Unspecified => &[],
        PurposeCategory::Analytics | PurposeCategory::Legal => &[Action::Read],
        PurposeCategory::Personalization => &[Action::Read, Action::Write],
        PurposeCategory::ResearchAndDevelopment => &[Action::Read, Action::Observe],
        PurposeCategory::Security => &[Action::Read, Action::Execute],
        PurposeCategory::Operations => &[Action::Read, Action::Write, Action::Execute],
    }
}

pub(super) fn check(request: &McpRequest, most: u32) -> Result<(), SemanticsError> {
    let purpose = request.purpose_dna.as_ref().ok_or(SemanticsError::NoCategory)?;
    let category = PurposeCategory::try_from(purpose.primary_category).unwrap_or_default();
    if category == PurposeCategory::Unspecified {
        return Err(SemanticsError::NoCategory);
    }
    for (permission, at) in request.permissions.iter().zip(1..) {
        permission_fits(at, permission, purpose, category)?;
        if let Some(bounds) = &permission.permission_specification {
            bounds_fit(at, bounds, most)?;
        }
    }
    Ok(())
}

fn permission_fits(
    at: usize,
    permission: &Permission,
    purpose: &PurposeDna,
    category: PurposeCategory,
) -> Result<(), SemanticsError> {
    let action = Action::try_from(permission.requested_action).unwrap_or_default();
    if action == Action::Unspecified {
        return Err(SemanticsError::NoAction(at));
    }
    if !allowed_actions(category).contains(&action) {
        let (category, action) = (category.as_str_name(), action.as_str_name());
        return Err(SemanticsError::ActionNotAllowed { at, category, action });
    }
    if !purpose.data_types_involved.contains(&permission.resource_identifier) {
        let resource = permission.resource_identifier.chars().take(200).collect();
        return Err(SemanticsError::ResourceNotInvolved { at, resource });
    }
    Ok(())
}

fn bounds_fit(at: usize, bounds: &PermissionSpecification, most: u32) -> Result<(), SemanticsError> {
    let found = bounds.max_frequency_per_hour;
    if found > most {
        return Err(SemanticsError::TooFrequent { at, found, most });
    }
    if SCOPES.contains(&bounds.data_access_scope.as_str()) {
        return Ok(());
    }
    Err(SemanticsError::UnknownScope { at, found: bounds.data_access_scope.chars().take(64).collect() })
}
