//! Memory of the device. What is given back is kept for whoever asks next: the driver takes long to give and to take memory.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Gpu;
use super::driver::{Driver, Event, Stream};
use crate::note::Note;

/// The blocks that nobody uses, and how much there is in all.
#[derive(Default)]
pub struct Pool {
    free: Mutex<Vec<(usize, u64)>>,
    held: AtomicUsize,
    used: AtomicUsize,
    peak: AtomicUsize,
}

/// Blocks are whole multiples of this, so that those of similar sizes can take each other's place.
const GRAIN: usize = 512;

impl Pool {
    /// An address, and how many bytes there are behind it.
    fn take(&self, driver: &Driver, bytes: usize) -> Result<(usize, u64), Note> {
        let bytes = bytes.max(1).next_multiple_of(GRAIN);
        let known = {
            let mut free = self.free();
            // One that is much larger is kept for who needs it.
            let fits = |(own, _): &(usize, u64)| *own >= bytes && *own <= bytes.saturating_add(bytes / 4);
            let best = free.iter().enumerate().filter(|(_, block)| fits(block)).min_by_key(|(_, block)| block.0);
            best.map(|(place, _)| place).map(|place| free.swap_remove(place))
        };
        let block = match known {
            Some(block) => block,
            None => (bytes, self.allocate(driver, bytes)?),
        };
        self.peak.fetch_max(self.used.fetch_add(block.0, Relaxed) + block.0, Relaxed);
        Ok(block)
    }

    /// New memory; where there is none, what is kept goes first.
    fn allocate(&self, driver: &Driver, bytes: usize) -> Result<u64, Note> {
        let mut address = driver.allocate(bytes)?;
        if address.is_none() {
            self.empty(driver);
            address = driver.allocate(bytes)?;
        }
        let Some(address) = address else {
            let [asked, used] =
                [bytes, self.used.load(Relaxed)].map(|bytes| format!("{} MiB", bytes.div_ceil(1 << 20)));
            return Err(Note::new(format!("the GPU is out of memory: {asked} are asked for, beside {used} in use")));
        };
        self.held.fetch_add(bytes, Relaxed);
        Ok(address)
    }

    fn give(&self, block: (usize, u64)) {
        self.used.fetch_sub(block.0, Relaxed);
        self.free().push(block);
    }

    /// Gives all that nobody uses back to the driver.
    fn empty(&self, driver: &Driver) {
        let blocks = std::mem::take(&mut *self.free());
        for (bytes, address) in blocks {
            driver.free(address);
            self.held.fetch_sub(bytes, Relaxed);
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<(usize, u64)>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most bytes that were in use at the same time.
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// The bytes that the driver has given, used or not.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }
}

/// Some memory. When it is dropped, others may use it, so that no work may be under way that does.
pub struct Block {
    gpu: Arc<Gpu>,
    bytes: usize,
    address: u64,
}

impl Block {
    /// So many bytes.
    pub fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Block, Note> {
        let (bytes, address) = gpu.pool.take(&gpu.driver, bytes)?;
        Ok(Block { gpu: gpu.clone(), bytes, address })
    }

    /// Where it starts.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.gpu.pool.give((self.bytes, self.address));
    }
}

/// What the runs of one machine need: all temporaries together, and a block for each array that is copied from the host or to it.
#[derive(Default)]
pub struct Memory {
    temporaries: Option<Block>,
    arrays: Vec<Option<Block>>,
    busy: Option<Busy>,
}

/// Work that may still use some memory: where it was started, and what is reached when it is done.
struct Busy {
    gpu: Arc<Gpu>,
    stream: Stream,
    end: Event,
}

impl Memory {
    /// To be called before work is started on a stream, which then waits for that on another one.
    pub fn begin(&mut self, gpu: &Arc<Gpu>, stream: Stream) -> Result<(), Note> {
        match &self.busy {
            Some(busy) if busy.stream != stream => gpu.driver.let_wait(stream, &busy.end),
            _ => Ok(()),
        }
    }

    /// To be called when work has been started on a stream.
    pub fn end(&mut self, gpu: &Arc<Gpu>, stream: Stream) -> Result<(), Note> {
        let end = gpu.driver.mark(stream)?;
        if let Some(before) = self.busy.replace(Busy { gpu: gpu.clone(), stream, end }) {
            gpu.driver.forget(before.end);
        }
        Ok(())
    }

    /// Waits for all work that uses it.
    pub fn settle(&mut self) -> Result<(), Note> {
        let Some(Busy { gpu, end, .. }) = self.busy.take() else { return Ok(()) };
        let reached = gpu.driver.reach(&end);
        gpu.driver.forget(end);
        reached
    }

    /// Room for all temporaries.
    pub fn temporaries(&mut self, gpu: &Arc<Gpu>, bytes: usize) -> Result<u64, Note> {
        if self.temporaries.as_ref().is_none_or(|block| block.bytes < bytes) {
            self.settle()?;
            // The old one goes first.
            self.temporaries = None;
            self.temporaries = Some(Block::new(gpu, bytes)?);
        }
        Ok(self.temporaries.as_ref().map_or(0, |block| block.address))
    }

    /// Room for the array with this number.
    pub fn array(&mut self, gpu: &Arc<Gpu>, number: usize, bytes: usize) -> Result<u64, Note> {
        if self.arrays.len() <= number {
            self.arrays.resize_with(number + 1, || None);
        }
        if self.arrays[number].as_ref().is_none_or(|block| block.bytes < bytes) {
            self.settle()?;
            self.arrays[number] = None;
            self.arrays[number] = Some(Block::new(gpu, bytes)?);
        }
        Ok(self.arrays[number].as_ref().map_or(0, |block| block.address))
    }

    /// All bytes that are held.
    pub fn bytes(&self) -> usize {
        self.arrays.iter().flatten().chain(&self.temporaries).map(|block| block.bytes).sum()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // An error can't be helped: the device is lost.
        let _ = self.settle();
    }
}
