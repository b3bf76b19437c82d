//! GPUs: kernels in CUDA C++, compiled by NVRTC and kept on disk, run by the driver. Both are loaded when a program first asks
//! for them; without them everything else works.

#![allow(unsafe_code, reason = "kernels take raw addresses")]

mod arrays;
mod compiler;
mod driver;
mod memory;
pub mod peak;

pub use arrays::Arrays;
pub use compiler::Compiler;
pub use driver::{Driver, Stream};
pub use memory::{Block, Memory};

use std::sync::{Arc, Mutex, OnceLock};

use gradix::emit::cuda::{suffices, threads};
use gradix::nest::{Nest, Real};

use crate::native::{Cache, Key, Settings};
use crate::note::Note;
use driver::{Function, Handle};
use memory::Pool;

/// The first device, and the compiler for it.
pub struct Gpu {
    driver: Driver,
    compiler: Compiler,
    pool: Pool,
}

/// Changes with the interface between kernels and what calls them.
const INTERFACE: &str = "gradix cuda kernels 1";
/// The most blocks of one launch.
const MAX_BLOCKS: usize = i32::MAX as usize;

impl Gpu {
    /// The device of this process; an error says what is missing.
    pub fn get() -> Result<Arc<Gpu>, Note> {
        static GPU: OnceLock<Result<Arc<Gpu>, Note>> = OnceLock::new();
        let load = || {
            let (driver, compiler) = (Driver::load()?, Compiler::load()?);
            Ok(Arc::new(Gpu { driver, compiler, pool: Pool::default() }))
        };
        GPU.get_or_init(load).clone()
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.driver.name
    }

    /// The driver.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The most bytes of the device that were in use at the same time.
    pub fn peak_bytes(&self) -> usize {
        self.pool.peak()
    }

    /// The bytes of the device that are held, used or not.
    pub fn held_bytes(&self) -> usize {
        self.pool.held()
    }
}

/// The kernels of a nest, compiled when sizes are known: with whole numbers of 32 bits where these suffice.
pub struct Kernels {
    gpu: Arc<Gpu>,
    text: String,
    count: usize,
    threads: Vec<u32>,
    cache: Option<Cache>,
    /// The wide ones and the narrow ones.
    loaded: [Mutex<Option<Arc<Loaded>>>; 2],
}

/// Kernels on the device.
pub struct Loaded {
    gpu: Arc<Gpu>,
    functions: Vec<Function>,
    handle: Handle,
    narrow: bool,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.gpu.driver.unload(&self.handle);
    }
}

impl Kernels {
    /// Those of a nest that was made for a GPU.
    pub fn of(nest: &Nest, real: Real, settings: &Settings) -> Result<Kernels, Note> {
        let (gpu, text) = (Gpu::get()?, gradix::emit::cuda(nest, real));
        let threads = nest.kernels.iter().map(|kernel| threads(kernel) as u32).collect();
        let (count, cache, loaded) = (nest.kernels.len(), settings.cache.clone(), Default::default());
        Ok(Kernels { gpu, text, count, threads, cache, loaded })
    }

    /// The kernels for these sizes, with whole numbers as wide as they have to be.
    pub fn at(&self, nest: &Nest, sizes: &[i64], elements: &[usize]) -> Result<Arc<Loaded>, Note> {
        let narrow = suffices(nest, sizes, elements);
        let Ok(mut loaded) = self.loaded[usize::from(narrow)].lock() else {
            return Err(Note::new("another thread failed while it compiled for the GPU"));
        };
        if let Some(known) = &*loaded {
            return Ok(known.clone());
        }
        let made = Arc::new(self.load(narrow)?);
        *loaded = Some(made.clone());
        Ok(made)
    }

    fn load(&self, narrow: bool) -> Result<Loaded, Note> {
        let Gpu { driver, compiler, .. } = &*self.gpu;
        let capability = driver.capability;
        let made_for = format!("{capability} {} {narrow}", compiler.version);
        let key = Key::of(&[INTERFACE, &self.text, &made_for]);
        let kept = self.cache.as_ref().and_then(|cache| std::fs::read(cache.find(key)?).ok());
        if let Some(loaded) = kept.and_then(|code| self.module(&code, narrow).ok()) {
            return Ok(loaded);
        }
        let code = compiler.compile_for(&self.text, capability, narrow)?;
        if let Some(cache) = &self.cache {
            // What can't be kept is compiled again next time.
            let _ = cache.store(key, &code);
        }
        self.module(&code, narrow)
    }

    fn module(&self, code: &[u8], narrow: bool) -> Result<Loaded, Note> {
        let Gpu { driver, compiler, .. } = &*self.gpu;
        let versions =
            || format!("the driver is for CUDA {}, the compiler is that of {}", driver.version, compiler.version);
        let module =
            driver.module(code).map_err(|note| if note.hint.is_empty() { note.hint(versions()) } else { note })?;
        let functions = (0..self.count).map(|number| module.kernel(&format!("gx_kernel_{number}")));
        let functions = functions.collect::<Result<_, Note>>()?;
        Ok(Loaded { gpu: self.gpu.clone(), functions, handle: module.into_handle(), narrow })
    }

    /// Starts all items of a kernel on a stream.
    ///
    /// # Safety
    ///
    /// The kernels are those for these sizes, whose checks hold, and the buffers have the elements that the nest touches.
    pub unsafe fn launch(
        &self,
        loaded: &Loaded,
        (kernel, items): (usize, usize),
        sizes: &[i64],
        buffers: &[u64],
        stream: Stream,
    ) -> Result<(), Note> {
        let mut begin = 0;
        while begin < items {
            let blocks = (items - begin).min(MAX_BLOCKS);
            let mut call = call(loaded.narrow, sizes, buffers, begin);
            let grid = (blocks as u32, self.threads[kernel]);
            // SAFETY: as the caller promises; the call is laid out as the kernel declares it.
            unsafe { self.gpu.driver.launch(loaded.functions[kernel], grid, &mut call, stream)? };
            begin += blocks;
        }
        Ok(())
    }

    /// The device.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }
}

/// `struct gx_call`: sizes, addresses, the first item.
fn call(narrow: bool, sizes: &[i64], buffers: &[u64], begin: usize) -> Vec<u64> {
    let mut wholes: Vec<u64> = sizes.iter().map(|size| *size as u64).collect();
    if wholes.is_empty() {
        wholes.push(0);
    }
    if narrow {
        let halves =
            |pair: &[u64]| u64::from(pair[0] as u32) | pair.get(1).map_or(0, |high| u64::from(*high as u32) << 32);
        wholes = wholes.chunks(2).map(halves).collect();
    }
    wholes.extend(if buffers.is_empty() { &[0] } else { buffers });
    wholes.push(begin as u64);
    wholes
}
