//! The machine that code is made for, as facts that decisions depend on.
//!
//! ```text
//! avx512: compile with -march=x86-64-v4
//! vectors: 64 bytes (8 f64, 16 f32), 32 registers
//! caches: L1 48 KiB, L2 2048 KiB, L3 32768 KiB, lines of 64 bytes
//! results past the caches: from 16384 KiB on
//! work: 32 items, sums in at most 16 parts
//! ```
//!
//! A [`Target`] decides how fast code is, never what it computes: loops are right for all sizes and on every machine
//! with a C compiler. It does decide in which order sums are taken, so nothing in it may change from run to run: the
//! number of cores, above all, is not in it.
//!
//! What things cost, and from where on they pay, stands in [`cost`].

pub mod cost;

use crate::scalar::Real;
use std::fmt;

/// Facts about a machine; a decision that depends on one takes it from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// The options with which GCC and Clang compile for it.
    pub options: &'static str,
    /// Bytes of a vector.
    pub vector_bytes: i64,
    /// Registers that hold a vector.
    pub vector_registers: usize,
    /// Bytes of a line of the caches.
    pub line_bytes: i64,
    /// Bytes of the first cache for data.
    pub l1_bytes: i64,
    /// Bytes of the second cache, which a core has for itself.
    pub l2_bytes: i64,
    /// Bytes of the last cache, which cores share.
    pub l3_bytes: i64,
    /// A result of so many bytes has left the caches before anyone reads it, and is written past them.
    pub streamed_bytes: i64,
    /// What a recurrence may store of its steps; past that, segments of them are computed again.
    pub memory_bytes: i64,
    /// How many independent items of work keep all cores busy to the end. It is a choice, not the number of cores:
    /// items decide how results are divided.
    pub items: i64,
    /// The most parts that a long sum is taken in. The same for any number of threads, as the bits are.
    pub sum_parts: i64,
    /// A GPU, for which the facts above say little.
    pub device: Option<Device>,
    /// Of a recurrence whose steps have at most so many additions, one thread goes through all steps: threads that share a
    /// step wait for each other at its end. An estimate of where the two take as long; it was not measured.
    pub short_step_additions: i64,
}

/// Facts about a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Threads of a block: an item of work.
    pub block_threads: i64,
    /// Threads of all multiprocessors together that are resident at the same time.
    pub resident_threads: i64,
    /// Bytes of shared memory that a block may have without asking for more.
    pub shared_bytes: i64,
    /// Bytes that one instruction loads from it, for a thread.
    pub vector_bytes: i64,
}

/// How much of a contraction's operands is packed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelSize {
    /// Terms of the reduction.
    pub terms: usize,
    /// Rows.
    pub rows: usize,
    /// Lanes.
    pub lanes: usize,
}

const KIB: i64 = 1024;
/// A preset says nothing of the memory of a machine.
const ANY_MEMORY: i64 = i64::MAX;

/// Servers from Skylake-X, desktops from Zen 4 on. The caches of a core are those of Sapphire Rapids; the last one is as
/// large as the whole machine, for which 32 MiB stand here.
pub const AVX512: Target = Target {
    name: "avx512",
    options: "-march=x86-64-v4",
    vector_bytes: 64,
    vector_registers: 32,
    line_bytes: 64,
    l1_bytes: 48 * KIB,
    l2_bytes: 2048 * KIB,
    l3_bytes: 32 * 1024 * KIB,
    streamed_bytes: 16 * 1024 * KIB,
    memory_bytes: ANY_MEMORY,
    items: 32,
    sum_parts: 16,
    device: None,
    short_step_additions: 32_768,
};

/// Other x86-64 processors of the last ten years. The caches are those of Zen 2 and 3.
pub const AVX2: Target = Target {
    name: "avx2",
    options: "-march=x86-64-v3",
    vector_bytes: 32,
    vector_registers: 16,
    l1_bytes: 32 * KIB,
    l2_bytes: 512 * KIB,
    ..AVX512
};

/// 64-bit ARM. The caches are those of Neoverse N1.
pub const NEON: Target = Target {
    name: "neon",
    options: "-march=armv8-a",
    vector_bytes: 16,
    l1_bytes: 64 * KIB,
    l2_bytes: 1024 * KIB,
    ..AVX512
};

/// Whatever a C compiler takes for granted: vectors of 16 bytes, few registers, small caches.
pub const PORTABLE: Target = Target {
    name: "portable",
    options: "",
    vector_bytes: 16,
    vector_registers: 16,
    l1_bytes: 32 * KIB,
    l2_bytes: 256 * KIB,
    ..AVX512
};

/// GPUs of compute capability 9.0: 132 multiprocessors (H100, H200) with 2,048 resident threads each.
pub const SM_90: Target = Target {
    name: "sm_90",
    options: "-arch=sm_90",
    line_bytes: 128,
    l2_bytes: 50 * 1024 * KIB,
    device: Some(Device { block_threads: 256, resident_threads: 132 * 2048, shared_bytes: 48 * KIB, vector_bytes: 16 }),
    ..PORTABLE
};

impl Target {
    /// The processors that have a name, from wide vectors to narrow ones.
    pub const PRESETS: [Target; 4] = [AVX512, AVX2, NEON, PORTABLE];
    /// The GPUs that have a name.
    pub const DEVICES: [Target; 1] = [SM_90];

    /// The preset of this name, or the GPU.
    ///
    /// ```
    /// use gradix::scalar::Real;
    /// use gradix::target::Target;
    /// assert_eq!(Target::named("avx2").unwrap().lanes(Real::F32), 8);
    /// assert_eq!(Target::named("abacus"), None);
    /// ```
    pub fn named(name: &str) -> Option<Target> {
        Target::PRESETS.into_iter().chain(Target::DEVICES).find(|target| target.name == name)
    }

    /// How many numbers a vector has.
    pub fn lanes(&self, real: Real) -> i64 {
        self.vector_bytes / real.bytes()
    }

    /// From so many values on, an index runs in lanes.
    pub fn wide(&self) -> f64 {
        cost::WIDE_VECTORS * self.lanes(Real::F64) as f64
    }

    /// The most sums of a register tile.
    pub fn tile_sums(&self) -> usize {
        (self.vector_registers as f64 * cost::TILE_SHARE_OF_REGISTERS) as usize
    }

    /// The most sums beside lanes over a reduction.
    pub fn column_sums(&self) -> usize {
        (self.vector_registers as f64 * cost::COLUMN_SHARE_OF_REGISTERS) as usize
    }

    /// How many f64 a share of the second cache holds.
    pub fn l2_elements(&self, share: f64) -> f64 {
        share * self.l2_bytes as f64 / Real::F64.bytes() as f64
    }

    /// How much of a contraction's operands is packed at a time.
    pub fn panels(&self) -> PanelSize {
        let held = |bytes: i64, share: f64, least: i64| {
            let many = (bytes as f64 * share / Real::F64.bytes() as f64) as i64;
            (many.max(least) / least * least) as usize
        };
        let terms = held(self.l1_bytes, cost::L1_SHARE_OF_ROW, cost::PANEL_MULTIPLE);
        let beside = |share: f64, multiple: i64| held(self.l2_bytes, share / terms as f64, multiple);
        let rows = beside(cost::L2_SHARE_OF_ROWS, cost::PANEL_MULTIPLE);
        PanelSize { terms, rows, lanes: beside(cost::L2_SHARE_OF_LANES, cost::PANEL_LANES_MULTIPLE) }
    }

    /// Items of work where each of them repeats something.
    pub fn few_items(&self) -> i64 {
        self.items / cost::ITEMS_PER_REPEATING_ITEM
    }

    /// The most parts of a sum that has many elements.
    pub fn few_parts(&self) -> i64 {
        self.sum_parts / cost::PARTS_PER_LARGE_PART
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Device { block_threads, resident_threads, shared_bytes, .. }) = self.device {
            writeln!(f, "{}: compile with {}", self.name, self.options)?;
            writeln!(f, "blocks of {block_threads} threads with {} KiB of shared memory", shared_bytes / KIB)?;
            return writeln!(f, "work: {resident_threads} threads at the same time");
        }
        let [l1, l2, l3, streamed] =
            [self.l1_bytes, self.l2_bytes, self.l3_bytes, self.streamed_bytes].map(|bytes| bytes / KIB);
        let options = if self.options.is_empty() { "no options" } else { self.options };
        writeln!(f, "{}: compile with {options}", self.name)?;
        let (double, single) = (self.lanes(Real::F64), self.lanes(Real::F32));
        let (bytes, registers) = (self.vector_bytes, self.vector_registers);
        writeln!(f, "vectors: {bytes} bytes ({double} f64, {single} f32), {registers} registers")?;
        writeln!(f, "caches: L1 {l1} KiB, L2 {l2} KiB, L3 {l3} KiB, lines of {} bytes", self.line_bytes)?;
        writeln!(f, "results past the caches: from {streamed} KiB on")?;
        writeln!(f, "work: {} items, sums in at most {} parts", self.items, self.sum_parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name() {
        for preset in Target::PRESETS {
            assert_eq!(Target::named(preset.name), Some(preset));
        }
        assert_eq!(Target::named("AVX2"), None);
    }

    #[test]
    fn lanes_are_those_of_the_instructions() {
        let lanes =
            |name: &str| Target::named(name).map(|target| [Real::F64, Real::F32].map(|real| target.lanes(real)));
        assert_eq!(["avx512", "avx2", "neon", "portable"].map(lanes), [[8, 16], [4, 8], [2, 4], [2, 4]].map(Some));
    }

    #[test]
    fn a_target_prints_with_units() {
        let text = AVX512.to_string();
        assert!(text.starts_with("avx512: compile with -march=x86-64-v4\nvectors: 64 bytes (8 f64, 16 f32)"), "{text}");
        assert!(text.contains("L2 2048 KiB") && text.ends_with("parts\n"), "{text}");
    }

    #[test]
    fn register_tiles_leave_room_for_operands() {
        for preset in Target::PRESETS {
            assert!(preset.column_sums() < preset.tile_sums() && preset.tile_sums() < preset.vector_registers);
        }
    }
}
