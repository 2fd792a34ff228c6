/// Id of a canary, which its value carries: 48 bits, for a name 28.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct CanaryId(pub u64);

impl std::fmt::Display for CanaryId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:012x}", self.0)
    }
}
