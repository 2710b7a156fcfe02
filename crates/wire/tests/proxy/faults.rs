//! Upstreams and clients that misbehave.
