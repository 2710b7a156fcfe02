//! Response headers as this crate keeps them: names in lower case, values as text, few enough for a linear search.

/// Headers of one response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Adds one header; the name is lower-cased.
    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_ascii_lowercase(), value.into()));
    }

    /// First value of a header, by its lower-case name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.trim())
    }

    /// All headers in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.trim()))
    }

    /// The headers that tell about rate limits, as sent: evidence for stated against observed limits.
    pub fn rate_limits(&self) -> Vec<(String, String)> {
        self.iter()
            .filter(|(name, _)| name.contains("ratelimit") || name.starts_with("retry-after"))
            .map(|(n, v)| (n.to_owned(), v.chars().take(200).collect()))
            .collect()
    }
}
