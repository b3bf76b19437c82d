//! The machine that this runs on, as a [`Target`].
//!
//! Features of the processor choose a preset; the sizes of the caches are the machine's own where the system tells them.
//! It is asked once, and always about the first core: the answer is part of how sums are taken, so it has to be the same
//! whenever the machine is.

use gradix::target::{self, Target};
use std::path::Path;
use std::sync::LazyLock;

/// The machine that this runs on.
pub fn host() -> Target {
    static HOST: LazyLock<Target> =
        LazyLock::new(|| with_caches(preset(), Path::new("/sys/devices/system/cpu/cpu0/cache")));
    *HOST
}

/// The preset for this processor: the widest vectors that emitted code would use here.
fn preset() -> Target {
    #[cfg(target_arch = "x86_64")]
    {
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        match is_x86_feature_detected!("avx") {
            _ if has_avx512 => target::AVX512,
            _ if has_avx2 => target::AVX2,
            true => Target { vector_bytes: target::AVX2.vector_bytes, ..target::PORTABLE },
            false => target::PORTABLE,
        }
    }
    #[cfg(target_arch = "aarch64")]
    return target::NEON;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    target::PORTABLE
}

/// A target with the caches that a folder of the system describes; what it does not tell stays.
fn with_caches(mut target: Target, folder: &Path) -> Target {
    for number in 0..MAX_CACHES {
        let entry = folder.join(format!("index{number}"));
        let read = |name: &str| std::fs::read_to_string(entry.join(name)).unwrap_or_default().trim().to_string();
        let (level, kind) = (read("level"), read("type"));
        let Some(bytes) = bytes(&read("size")) else { continue };
        match (level.as_str(), kind.as_str()) {
            ("1", "Data" | "Unified") => target.l1_bytes = bytes,
            ("2", "Data" | "Unified") => target.l2_bytes = bytes,
            ("3", "Data" | "Unified") => target.l3_bytes = bytes,
            _ => continue,
        }
    }
    target
}

/// More caches than a core is known to have.
const MAX_CACHES: usize = 8;

/// The bytes in a text such as `48K` or `32M`, of a cache that holds something.
fn bytes(text: &str) -> Option<i64> {
    let (digits, unit) = match text.strip_suffix(['K', 'M']) {
        Some(digits) => (digits, if text.ends_with('K') { 1 << 10 } else { 1 << 20 }),
        None => (text, 1),
    };
    let number: i64 = digits.parse().ok()?;
    number.checked_mul(unit).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::target::{AVX2, NEON};
    use std::fs;

    #[test]
    fn the_host_is_the_same_every_time() {
        assert_eq!(host(), with_caches(preset(), Path::new("/sys/devices/system/cpu/cpu0/cache")));
        assert!(host().l2_bytes > 0 && host().lanes(gradix::scalar::Real::F64) >= 2);
    }

    #[test]
    fn sizes_of_caches_have_units() {
        assert_eq!(
            ["48K", "32M", "65536", "0K", "", "many"].map(bytes),
            [Some(48 << 10), Some(32 << 20), Some(65536), None, None, None]
        );
    }

    #[test]
    fn what_the_system_does_not_tell_is_that_of_the_preset() {
        let folder = std::env::temp_dir().join(format!("gradix-host-{}", std::process::id()));
        let describe = |number: usize, level: &str, kind: &str, size: &str| {
            let entry = folder.join(format!("index{number}"));
            fs::create_dir_all(&entry).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(entry.join(name), format!("{text}\n")).unwrap();
            }
        };
        describe(0, "1", "Instruction", "64K");
        describe(1, "2", "Unified", "1024K");
        let found = with_caches(AVX2, &folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Target { l2_bytes: 1 << 20, ..AVX2 });
        assert_eq!(with_caches(NEON, &folder), NEON);
    }
}
