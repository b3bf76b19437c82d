//! What the machine's processor is, as text: code for one may not run on another.

use std::fs::File;
use std::io::Read;

/// Text that changes whenever `-march=native` could mean something else.
pub fn identity() -> String {
    // The first processor stands for all. The system writes the list as it is read, so the rest costs nothing.
    let mut start = vec![0; 8 << 10];
    let length = File::open("/proc/cpuinfo").and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let text = String::from_utf8_lossy(&start[..length]);
    format!("{} {} {}", std::env::consts::OS, std::env::consts::ARCH, lasting(&text))
}

/// The lines about the first processor that are the same at every reading.
fn lasting(text: &str) -> String {
    const KEYS: [&str; 10] = [
        "vendor_id",
        "cpu family",
        "model",
        "stepping",
        "flags",
        "Features",
        "CPU implementer",
        "CPU variant",
        "CPU part",
        "isa",
    ];
    let first = text.lines().take_while(|line| !line.trim().is_empty());
    let kept = first.filter(|line| line.split(':').next().is_some_and(|key| KEYS.contains(&key.trim())));
    kept.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_not_part_of_the_identity() {
        let text =
            "processor\t: 0\nmodel\t\t: 207\ncpu MHz\t\t: 2300.1\nflags\t\t: fpu  avx\n\nprocessor : 1\nmodel : 3\n";
        assert_eq!(lasting(text), "model : 207; flags : fpu avx");
        assert_eq!(identity(), identity());
    }
}
