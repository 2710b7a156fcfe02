//! Exit codes: a documented contract for scripts.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: all good. A lane that failed is a recorded result, so that `burst` ends with it too.
    Fine,
    /// 1: a negative verdict. What was measured failed its rule: a trigger fired, a record expired, a regression.
    Negative,
    /// 2: wrong usage or configuration, or things that cannot be compared. Nothing was measured.
    Usage,
    /// 3: could not measure, or too little data to decide: nothing answered, the disk is full, nothing is on record yet.
    Unmeasured,
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Negative => 1,
            Self::Usage => 2,
            Self::Unmeasured => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The codes in words, for the help texts.
pub const HELP: &str = "\
Exit codes:
  0  fine
  1  a negative verdict: what was measured failed its rule
  2  wrong usage or configuration, or not comparable
  3  could not measure, or too little data to decide";
