//! What the machine can do at most: multiply-adds and memory traffic, measured.

#![allow(unsafe_code, reason = "kernels take raw pointers")]

use std::time::Instant;

use super::{Settings, load};
use crate::buffers::Block;
use crate::element::Element;
use crate::files::Dtype;
use crate::note::Note;
use crate::{memory, threads};

/// The most that all threads together do in a second.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    /// Additions and multiplications.
    pub operations: f64,
    /// Bytes read from and written to memory.
    pub bytes: f64,
}

/// Twelve sums that do not wait for each other, in the widest registers; and `a = b + s*c` over arrays that hardly any
/// cache holds.
const TEXT: &str = "#include <stdint.h>
#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
typedef real vector __attribute__((vector_size(WIDTH)));

void gx_kernel_0(const int64_t *size, real *const *buffer, real *local, int64_t begin, int64_t end)
{
    (void)local;
    for (int64_t item = begin; item < end; item++) {
        const vector m = (vector){0} + (real)0.5, c = (vector){0} + (real)1;
        vector a0 = c, a1 = c, a2 = c, a3 = c, a4 = c, a5 = c, a6 = c, a7 = c, a8 = c, a9 = c, a10 = c, a11 = c;
        for (int64_t round = 0; round < size[0]; round++) {
            a0 = a0*m + c; a1 = a1*m + c; a2 = a2*m + c; a3 = a3*m + c; a4 = a4*m + c; a5 = a5*m + c;
            a6 = a6*m + c; a7 = a7*m + c; a8 = a8*m + c; a9 = a9*m + c; a10 = a10*m + c; a11 = a11*m + c;
            __asm__ volatile(\"\");
        }
        const vector sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
        buffer[0][2*item] = sum[0];
        buffer[0][2*item + 1] = 2 * 12 * WIDTH / sizeof(real);
    }
}

void gx_kernel_1(const int64_t *size, real *const *buffer, real *local, int64_t begin, int64_t end)
{
    (void)local;
    real *restrict a = buffer[0];
    const real *restrict b = buffer[1], *restrict c = buffer[2];
    for (int64_t i = begin * size[0]; i < end * size[0]; i++)
        a[i] = b[i] + (real)3 * c[i];
}
";

/// Measures both, for a fraction of a second.
pub fn measure(dtype: Dtype, threads: usize, settings: &Settings) -> Result<Peak, Note> {
    match dtype {
        Dtype::F64 => measure_as::<f64>("double", threads, settings),
        Dtype::F32 => measure_as::<f32>("float", threads, settings),
    }
}

const REPEATS: usize = 8;
const ROUNDS: i64 = 20_000;
const BLOCK: usize = 1 << 14;

fn measure_as<T: Element>(name: &str, threads: usize, settings: &Settings) -> Result<Peak, Note> {
    let (kernels, _) = load(&[format!("#define real {name}\n{TEXT}")], 2, false, &settings.compiler()?, settings)?;
    let run = |kernel: usize, size: i64, items: usize, blocks: &[&Block]| {
        let call = Call(blocks.iter().map(|block| block.start().cast::<T>()).collect());
        let once = || {
            let start = Instant::now();
            threads::share_items(threads, items, &|_, range| {
                // SAFETY: the blocks have the elements that the kernel touches in these items (see below); items
                // write different ones, and nobody else has the blocks.
                unsafe {
                    let pointers = call.pointers();
                    kernels.call(kernel, &[size], pointers, std::ptr::null_mut(), range.start as i64, range.end as i64);
                }
            });
            start.elapsed().as_secs_f64()
        };
        (0..REPEATS).map(|_| once()).fold(f64::INFINITY, f64::min)
    };
    let lack = || Note::new("there is no memory to measure the machine with");

    let items = 8 * threads;
    let sums = Block::new(2 * items * size_of::<T>()).ok_or_else(lack)?;
    let seconds = run(0, ROUNDS, items, &[&sums]);
    // SAFETY: the kernel has written `2*items` elements, and no thread is in it any more.
    let each = unsafe { sums.start().cast::<T>().add(1).read() }.to_f64();
    let operations = each * ROUNDS as f64 * items as f64 / seconds;

    let wanted = 128 << 20;
    let bytes = if memory::fits(4 * wanted) { wanted } else { wanted / 16 };
    let count = bytes / size_of::<T>() / BLOCK;
    let arrays: Option<Vec<Block>> = (0..3).map(|_| Block::new(bytes)).collect();
    let arrays = arrays.ok_or_else(lack)?;
    // SAFETY: all three blocks have this many bytes, and zeros are numbers.
    arrays.iter().for_each(|block| unsafe { block.start().write_bytes(0, bytes) });
    let seconds = run(1, BLOCK as i64, count, &[&arrays[0], &arrays[1], &arrays[2]]);
    Ok(Peak { operations, bytes: (3 * count * BLOCK * size_of::<T>()) as f64 / seconds })
}

struct Call<T>(Vec<*mut T>);

// SAFETY: the pointers are only passed on.
unsafe impl<T> Sync for Call<T> {}

impl<T> Call<T> {
    fn pointers(&self) -> &[*mut T] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::tests::Folder;

    #[test]
    fn both_are_measured() {
        let peak = measure(Dtype::F32, 1, &Folder::new().settings()).unwrap();
        assert!(peak.operations > 1e8 && peak.operations < 1e13, "{peak:?}");
        assert!(peak.bytes > 1e8 && peak.bytes < 1e13, "{peak:?}");
    }
}
