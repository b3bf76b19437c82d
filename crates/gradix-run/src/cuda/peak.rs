//! What the device does at most: products and sums in registers, and copies of memory, measured on it.

use super::{Block, Gpu, Stream};
use crate::files::Dtype;
use crate::native::peak::Peak;
use crate::note::Note;

/// Two kernels: one copies, the other has eight independent chains of products and sums in each thread.
const TEXT: &str = r#"
struct gx_call {
    long long count;
    gx_t *from, *to;
};

extern "C" __global__ void gx_kernel_0(const gx_call call) {
    const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < call.count) call.to[i] = call.from[i];
}

extern "C" __global__ void gx_kernel_1(const gx_call call) {
    gx_t sum[8];
    const gx_t x = call.from[threadIdx.x];
    for (int i = 0; i < 8; i++) sum[i] = i;
    for (long long n = 0; n < call.count; n++)
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] = sum[i] * x + x;
    gx_t all = 0;
    for (int i = 0; i < 8; i++) all += sum[i];
    if (all == (gx_t)1) call.to[0] = all;
}
"#;

const THREADS: usize = 256;
/// Past all caches.
const COPIED_BYTES: usize = 256 << 20;
/// Enough for every multiprocessor of any device.
const BLOCKS: usize = 132 * 16;
/// A measurement of at least so many seconds is taken.
const LONG_ENOUGH: f64 = 2e-3;
const MAX_ROUNDS: u64 = 1 << 14;
const OPERATIONS_OF_ROUND: f64 = 16.0;

/// What the first device reaches, in operations and bytes a second.
pub fn measure(dtype: Dtype) -> Result<Peak, Note> {
    let gpu = Gpu::get()?;
    let (number, width) = match dtype {
        Dtype::F64 => ("double", size_of::<f64>()),
        Dtype::F32 => ("float", size_of::<f32>()),
    };
    let text = format!("typedef {number} gx_t;\n{TEXT}");
    let module = gpu.driver.module(&gpu.compiler.compile_for(&text, gpu.driver.capability, false)?)?;
    let kernels = [module.kernel("gx_kernel_0")?, module.kernel("gx_kernel_1")?];
    let (from, to) = (Block::new(&gpu, COPIED_BYTES)?, Block::new(&gpu, COPIED_BYTES)?);
    let seconds = |kernel: usize, blocks: usize, count: u64| {
        gpu.driver.timed(&mut || {
            let mut call = [count, from.address(), to.address()];
            let grid = (blocks as u32, THREADS as u32);
            // SAFETY: both blocks have the elements that the kernels touch, and the call is laid out as they declare it.
            unsafe { gpu.driver.launch(kernels[kernel], grid, &mut call, Stream::default()) }
        })
    };
    let count = COPIED_BYTES / width;
    let copies =
        (0..3).map(|_| seconds(0, count.div_ceil(THREADS), count as u64)).collect::<Result<Vec<f64>, Note>>()?;
    let copy = copies.into_iter().fold(f64::INFINITY, f64::min);
    let mut rounds = 16;
    let mut taken = seconds(1, BLOCKS, rounds)?;
    while taken < LONG_ENOUGH && rounds < MAX_ROUNDS {
        rounds *= 4;
        taken = seconds(1, BLOCKS, rounds)?;
    }
    let operations = OPERATIONS_OF_ROUND * rounds as f64 * (BLOCKS * THREADS) as f64;
    gpu.driver.unload(&module.into_handle());
    Ok(Peak { operations: operations / taken, bytes: 2.0 * COPIED_BYTES as f64 / copy })
}
