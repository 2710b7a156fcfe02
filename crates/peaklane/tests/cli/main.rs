//! The real binary from outside: what it prints, where, and with which exit code. One binary for all, since each one more
//! is one more link.

mod calls;
mod campaigns;
mod check;
mod completions;
mod countertest;
mod data;
mod decide;
mod docs;
mod help;
mod init;
mod measure;
mod schema;
mod store;
mod summary;
mod support;
mod truths;
mod watch;
