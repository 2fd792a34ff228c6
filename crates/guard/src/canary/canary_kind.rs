/// Shape of a canary: the kind of value that it resembles.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryKind {
    /// Key of an API that no vendor has: `key_billing_…`.
    ApiKey,
    /// E-mail address in a reserved domain, which has no mailboxes.
    Email,
    /// Link to a host in a reserved domain.
    Url,
    /// Name of a person or a project, in three words.
    Name,
}
