/// Secret key of the fingerprints of one tracker. It has to be random: an attacker who knows it can make texts
/// that agree in their fingerprints.
#[derive(Copy, Clone)]
pub struct FlowKey(pub [u8; 16]);

impl std::fmt::Debug for FlowKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("FlowKey(…)")
    }
}
