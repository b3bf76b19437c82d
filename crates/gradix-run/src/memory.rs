//! How much memory a run may take.

use std::fs;

/// Below this nobody is asked.
const ALWAYS: u64 = 256 << 20;

/// Whether this many more bytes are to be had without driving the system out of memory: it hands out more than it has,
/// and ends a process when that is found out.
pub fn fits(bytes: usize) -> bool {
    bytes as u64 <= ALWAYS || available().is_none_or(|available| bytes as u64 <= available)
}

/// What the machine and the limit of this process's group leave; `None` if the system does not say.
fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine(&text));
    let number = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok();
    let group = number("memory.max").zip(number("memory.current")).map(|(most, now)| most.saturating_sub(now));
    machine.into_iter().chain(group).min()
}

/// Half of what the machine has, or the group of this process may have; `None` if the system does not say.
pub fn half() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| entry(&text, "MemTotal:"));
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse::<u64>().ok());
    machine.into_iter().chain(group).min().map(|bytes| bytes / 2)
}

fn machine(text: &str) -> Option<u64> {
    entry(text, "MemAvailable:")
}

fn entry(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_its_memory() {
        assert_eq!(machine("MemTotal: 9 kB\nMemAvailable:      20 kB\n"), Some(20_480));
        assert_eq!((machine(""), machine("MemAvailable: x kB")), (None, None));
    }

    #[test]
    fn small_amounts_always_fit() {
        assert!(fits(0) && fits(1 << 20));
        assert!(available().is_none_or(|available| !fits(available as usize * 2)));
    }
}
