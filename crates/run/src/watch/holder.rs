//! Who holds a claim: a process, named so that another one of the same machine can tell that it is gone.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is known of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A process of this machine that is there.
    Alive,
    /// A process of this machine that is gone.
    Gone,
    /// Of another machine, another container or another boot: only its lease tells.
    Unknown,
}

/// A new name of this process: boot of the machine, room of process ids, process id and its start, and a number. Blank
/// parts where the system does not tell.
pub fn me() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    let start = started(pid).unwrap_or_default();
    format!("{}/{pid}/{start}/{number}", here())
}

/// What can be said of a holder from here.
pub fn fate(holder: &str) -> Fate {
    let parts: Vec<&str> = holder.split('/').collect();
    let [boot, room, pid, start, _] = parts[..] else { return Fate::Unknown };
    let known = !boot.is_empty() && !room.is_empty() && !start.is_empty();
    let Ok(pid) = pid.parse() else { return Fate::Unknown };
    if !known || format!("{boot}/{room}") != here() {
        return Fate::Unknown;
    }
    match started(pid) {
        Some(found) if found == start => Fate::Alive,
        // the number belongs to another process by now
        Some(_) => Fate::Gone,
        // a folder that cannot be read is not a missing one
        None if fs::metadata(format!("/proc/{pid}")).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) => {
            Fate::Gone
        }
        None => Fate::Unknown,
    }
}

/// The boot of this machine and the room in which process ids count: containers of one machine have rooms of their own.
fn here() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let room = fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string()).unwrap_or_default();
    format!("{}/{}", boot.trim(), room.trim_start_matches("pid:"))
}

/// When a process began, in ticks since the boot: field 22 of `/proc/PID/stat` (proc(5)).
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name in parentheses may hold anything; field 3 is the first one behind it
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(22 - 3).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_living_process_is_told_from_one_that_is_gone_and_from_a_stranger() {
        let me = me();
        assert_eq!(fate(&me), Fate::Alive);
        let parts: Vec<&str> = me.split('/').collect();
        let with = |at: usize, part: &str| {
            let mut other = parts.clone();
            other[at] = part;
            other.join("/")
        };
        assert_eq!(fate(&with(3, "1")), Fate::Gone, "the same number, begun at another time");
        assert_eq!(fate(&with(2, "4194999")), Fate::Gone, "a number above the largest that Linux gives");
        assert_eq!(fate(&with(0, "another-boot")), Fate::Unknown);
        assert_eq!(fate(&with(1, "[1]")), Fate::Unknown);
        assert_eq!(fate("a name of another version"), Fate::Unknown);
    }
}
