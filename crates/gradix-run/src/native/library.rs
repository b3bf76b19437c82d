//! Shared libraries with kernels, and calls into them.

#![allow(unsafe_code, reason = "loading a library and calling what is in it can't be checked by the compiler")]

use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

/// `void gx_kernel_K(const int64_t *size, T *const *buffer, T *local, int64_t begin, int64_t end)`
type Function = unsafe extern "C" fn(*const i64, *const *mut c_void, *mut c_void, i64, i64);

/// The kernels of one library, in order. The library stays loaded as long as they live.
#[derive(Clone, Debug)]
pub struct Kernels {
    functions: Vec<Function>,
    _library: Arc<libloading::Library>,
}

/// A library that is loaded.
#[derive(Clone, Debug)]
pub struct Library(Arc<libloading::Library>);

impl Library {
    /// Loads a library that was compiled from a kernel's text.
    pub fn open(path: &Path) -> Result<Library, String> {
        // SAFETY: the file is what the compiler made from generated text (the cache checks that it is whole), which has
        // no code that runs when it is loaded or unloaded.
        let library = unsafe { libloading::Library::new(path) };
        library.map(|library| Library(Arc::new(library))).map_err(|error| error.to_string())
    }

    /// The functions `gx_kernel_0`, …
    pub fn kernels(&self, count: usize) -> Result<Kernels, String> {
        let function = |number: usize| {
            // SAFETY: every function of this name has this type; the key of the cache names the version of the
            // interface.
            let symbol = unsafe { self.0.get::<Function>(format!("gx_kernel_{number}").as_bytes()) };
            symbol.map(|symbol| *symbol).map_err(|error| error.to_string())
        };
        let functions = (0..count).map(function).collect::<Result<_, _>>()?;
        Ok(Kernels { functions, _library: self.0.clone() })
    }
}

impl Kernels {
    /// Runs the items `begin..end` of a kernel.
    ///
    /// # Safety
    ///
    /// For the nest that the text was made from, and whose checks hold at these sizes:
    /// - `sizes` has a value for every size of the nest;
    /// - `buffers` has a pointer for every buffer; those that are not local have as many elements, of the type that the
    ///   text was made for, as the nest says for these sizes; nobody else writes them, and nobody reads those that are
    ///   not inputs, except for other items of the same kernel;
    /// - `local` has room for the local buffers of this kernel, starts at a multiple of 64 bytes, and belongs to this
    ///   call;
    /// - `begin..end` is inside the items that the nest says for these sizes, and no item is run twice at the same
    ///   time.
    pub unsafe fn call<T>(
        &self,
        kernel: usize,
        sizes: &[i64],
        buffers: &[*mut T],
        local: *mut T,
        begin: i64,
        end: i64,
    ) {
        // SAFETY: as the caller promises; pointers to numbers are passed as pointers to anything.
        unsafe { self.functions[kernel](sizes.as_ptr(), buffers.as_ptr().cast(), local.cast(), begin, end) }
    }
}
