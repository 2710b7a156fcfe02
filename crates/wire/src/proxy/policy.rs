//! What a proxy was told to do.

use std::time::Duration;

use peaklane_core::secret::Secret;

use crate::client::Limits;

/// What happens to the upstream when the client leaves before the end of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It is closed at once, so that nobody pays for tokens which nobody reads.
    #[default]
    Close,
    /// The answer is read to its end, so that its figures are whole.
    Drain,
}

/// The rules of one proxy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Longest waits: for the first byte of an answer, between two bytes, in all. Far beyond every harness's own, so
    /// that it is the harness who gives up; they only keep dead streams from staying for ever.
    pub limits: Limits,
    /// Longest time for opening a connection to an upstream.
    pub connect: Duration,
    /// How long a client may keep an idle connection.
    pub keep_alive: Duration,
    /// When the client leaves.
    pub on_disconnect: OnDisconnect,
    /// The proxy's own token, which clients must show. `None`: everybody who can connect may call.
    pub token: Option<Secret>,
    /// Keep a copy of each request for whoever is told of it; without, an empty one is told.
    pub copies: bool,
    /// Ask for token counts where the client did not, and take them out of the answer again.
    pub inject_usage: bool,
}

impl Default for Policy {
    /// First byte and idle 15 min, total 2 h; 10 s to connect; idle clients 2 min.
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            limits: Limits { first_byte: 15 * minute, idle: 15 * minute, total: 120 * minute },
            connect: Duration::from_secs(10),
            keep_alive: 2 * minute,
            on_disconnect: OnDisconnect::Close,
            token: None,
            copies: true,
            inject_usage: false,
        }
    }
}

/// Compares without telling by its time how much was right.
pub(crate) fn same(a: &str, b: &str) -> bool {
    let difference = a.bytes().zip(b.bytes()).fold(a.len() ^ b.len(), |sum, (x, y)| sum | usize::from(x ^ y));
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_same() {
        assert!(same("abc", "abc"));
        assert!(!same("abc", "abd"));
        assert!(!same("abc", "ab"));
        assert!(!same("", "a"));
    }
}
