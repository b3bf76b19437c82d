//! The CUDA driver, loaded when it is first asked for: a thin layer over the dozen functions that are needed.
//!
//! A crate for this (`cudarc`) wraps all of CUDA and its libraries; what is used here is small, and tests put a driver of
//! their own in its place, which runs kernels on the processor.

#![allow(unsafe_code, reason = "functions of a C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::ptr;

use libloading::Library;

use crate::note::Note;

/// A kernel of a module.
#[derive(Clone, Copy)]
pub struct Function(*mut c_void);

// SAFETY: the driver's handles may be used from any thread in which the context is current.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

type Status = c_int;

macro_rules! functions {
    ($($field:ident $symbol:literal ($($argument:ty),*);)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl Functions {
            /// # Safety
            ///
            /// The library has these functions with these arguments.
            unsafe fn of(library: &Library) -> Result<Functions, libloading::Error> {
                // SAFETY: as the caller promises.
                Ok(Functions { $($field: unsafe { *library.get($symbol.as_bytes())? },)* })
            }
        }
    };
}

functions! {
    init "cuInit" (c_uint);
    version "cuDriverGetVersion" (*mut c_int);
    count "cuDeviceGetCount" (*mut c_int);
    device "cuDeviceGet" (*mut c_int, c_int);
    name "cuDeviceGetName" (*mut c_char, c_int, c_int);
    attribute "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    retain "cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
    set_current "cuCtxSetCurrent" (*mut c_void);
    current "cuCtxGetCurrent" (*mut *mut c_void);
    load "cuModuleLoadData" (*mut *mut c_void, *const c_void);
    unload "cuModuleUnload" (*mut c_void);
    function "cuModuleGetFunction" (*mut *mut c_void, *mut c_void, *const c_char);
    allocate "cuMemAlloc_v2" (*mut u64, usize);
    free "cuMemFree_v2" (u64);
    upload "cuMemcpyHtoD_v2" (u64, *const c_void, usize);
    download "cuMemcpyDtoH_v2" (*mut c_void, u64, usize);
    launch "cuLaunchKernel" (
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void,
        *mut *mut c_void
    );
    error "cuGetErrorString" (Status, *mut *const c_char);
    event "cuEventCreate" (*mut *mut c_void, c_uint);
    reach "cuEventSynchronize" (*mut c_void);
    after "cuStreamWaitEvent" (*mut c_void, *mut c_void, c_uint);
    record "cuEventRecord" (*mut c_void, *mut c_void);
    elapsed "cuEventElapsedTime" (*mut f32, *mut c_void, *mut c_void);
    destroy "cuEventDestroy_v2" (*mut c_void);
}

/// A queue of work on the device, by the handle that the driver or a framework gave it; the default one is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream(pub u64);

/// A place in the work of a stream.
pub struct Event(*mut c_void);

// SAFETY: as for functions.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// The driver, and the first device's context.
pub struct Driver {
    functions: Functions,
    context: *mut c_void,
    /// What the device is called.
    pub name: String,
    /// Its compute capability, as in 90.
    pub capability: u32,
    /// The version of CUDA that the driver is for, as in 12.4.
    pub version: String,
    // The functions are its.
    _library: Library,
}

// SAFETY: the driver may be called from any thread; every call makes the context current first.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

/// Where the driver is looked for: `$GRADIX_CUDA_DRIVER`, then where systems have it.
fn names() -> Vec<PathBuf> {
    let named = std::env::var_os("GRADIX_CUDA_DRIVER").map(PathBuf::from);
    named.map_or_else(|| ["libcuda.so.1", "libcuda.so", "nvcuda.dll"].map(PathBuf::from).to_vec(), |path| vec![path])
}

const OLDEST: c_int = 11_000;
/// A version as people write it.
fn dotted(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn too_old(why: &str) -> Note {
    Note::new(format!("the CUDA driver is too old: {why}")).hint("install a newer driver of NVIDIA's")
}

const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

impl Driver {
    /// Loads the driver and gets the context of the first device.
    pub fn load() -> Result<Driver, Note> {
        // SAFETY: what is loaded is the system's driver, or what the user names.
        let library = names().iter().find_map(|name| unsafe { Library::new(name) }.ok());
        let missing = || {
            Note::new("there is no CUDA driver (libcuda.so.1)")
                .hint("install NVIDIA's driver, or name it in $GRADIX_CUDA_DRIVER")
        };
        let library = library.ok_or_else(missing)?;
        // SAFETY: these are functions of the driver's interface since CUDA 11.
        let functions = unsafe { Functions::of(&library) };
        let functions = functions.map_err(|error| too_old(&error.to_string()))?;
        let mut driver = Driver {
            functions,
            context: ptr::null_mut(),
            name: String::new(),
            capability: 0,
            version: String::new(),
            _library: library,
        };
        driver.open()?;
        Ok(driver)
    }

    fn open(&mut self) -> Result<(), Note> {
        let (mut version, mut count, mut device) = (0, 0, 0);
        let (mut name, mut major, mut minor) = ([0; 256], 0, 0);
        let own = &self.functions;
        // SAFETY: all pointers are to variables of the types that the driver writes.
        unsafe {
            self.ask((own.init)(0))?;
            self.ask((own.version)(&raw mut version))?;
            if version < OLDEST {
                return Err(too_old(&format!("it is for CUDA {}, and {} is needed", dotted(version), dotted(OLDEST))));
            }
            self.version = dotted(version);
            self.ask((own.count)(&raw mut count))?;
            if count == 0 {
                let hint = "a device may be hidden by $CUDA_VISIBLE_DEVICES";
                return Err(Note::new("the CUDA driver finds no device").hint(hint));
            }
            self.ask((own.device)(&raw mut device, 0))?;
            self.ask((own.name)(name.as_mut_ptr(), name.len() as c_int - 1, device))?;
            self.ask((own.attribute)(&raw mut major, CAPABILITY_MAJOR, device))?;
            self.ask((own.attribute)(&raw mut minor, CAPABILITY_MINOR, device))?;
            self.name = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
            let mut context = ptr::null_mut();
            self.ask((own.retain)(&raw mut context, device))?;
            self.context = context;
        }
        self.capability = (10 * major + minor) as u32;
        Ok(())
    }

    /// An error of the driver in words.
    fn ask(&self, status: Status) -> Result<(), Note> {
        if status == 0 {
            return Ok(());
        }
        let mut text: *const c_char = ptr::null();
        // SAFETY: the driver writes the address of a constant text, or null.
        let known = unsafe { (self.functions.error)(status, &raw mut text) } == 0 && !text.is_null();
        // SAFETY: it is a text of the driver's.
        let text = if known { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() } else { String::new() };
        let note = Note::new(format!("CUDA fails: {text} ({status})"));
        // After these, every call of the process fails.
        const LOST: [Status; 6] = [46, 214, 700, 702, 719, 999];
        Err(if LOST.contains(&status) { note.hint("the device is lost to this process; start it again") } else { note })
    }

    fn current(&self) -> Result<&Functions, Note> {
        // SAFETY: the context lives as long as the process.
        self.ask(unsafe { (self.functions.set_current)(self.context) })?;
        Ok(&self.functions)
    }

    /// Loads compiled code.
    pub fn module(&self, code: &[u8]) -> Result<Module<'_>, Note> {
        let (own, mut handle) = (self.current()?, ptr::null_mut());
        // SAFETY: the code is what the compiler made.
        self.ask(unsafe { (own.load)(&raw mut handle, code.as_ptr().cast()) })?;
        Ok(Module { driver: self, handle })
    }

    /// Memory of the device; `None` if there is not enough.
    pub fn allocate(&self, bytes: usize) -> Result<Option<u64>, Note> {
        const OUT_OF_MEMORY: Status = 2;
        let (own, mut address) = (self.current()?, 0);
        // SAFETY: the driver writes an address.
        match unsafe { (own.allocate)(&raw mut address, bytes.max(1)) } {
            OUT_OF_MEMORY => Ok(None),
            status => self.ask(status).map(|()| Some(address)),
        }
    }

    /// Gives memory back.
    pub fn free(&self, address: u64) {
        if let Ok(own) = self.current() {
            // SAFETY: it came from `allocate`; an error can't be helped.
            let _ = unsafe { (own.free)(address) };
        }
    }

    /// # Safety
    ///
    /// There are so many bytes behind both addresses.
    pub unsafe fn upload(&self, to: u64, from: *const u8, bytes: usize) -> Result<(), Note> {
        let own = self.current()?;
        // SAFETY: as the caller promises.
        if bytes == 0 { Ok(()) } else { self.ask(unsafe { (own.upload)(to, from.cast(), bytes) }) }
    }

    /// # Safety
    ///
    /// There are so many bytes behind both addresses.
    pub unsafe fn download(&self, to: *mut u8, from: u64, bytes: usize) -> Result<(), Note> {
        let own = self.current()?;
        // SAFETY: as the caller promises.
        if bytes == 0 { Ok(()) } else { self.ask(unsafe { (own.download)(to.cast(), from, bytes) }) }
    }

    /// Starts a kernel on a stream, with so many blocks of so many threads; it takes one argument by value.
    ///
    /// # Safety
    ///
    /// The kernel takes these bytes, and does nothing but what is right with these blocks and threads.
    pub unsafe fn launch(
        &self,
        kernel: Function,
        (blocks, threads): (u32, u32),
        call: &mut [u64],
        stream: Stream,
    ) -> Result<(), Note> {
        let own = self.current()?;
        let mut arguments: [*mut c_void; 1] = [call.as_mut_ptr().cast()];
        let (none, stream) = (ptr::null_mut(), stream.0 as *mut c_void);
        // SAFETY: as the caller promises; the driver copies the argument before it returns.
        self.ask(unsafe {
            (own.launch)(kernel.0, blocks, 1, 1, threads, 1, 1, 0, stream, arguments.as_mut_ptr(), none)
        })
    }

    /// What is reached when all that was started on a stream so far is done.
    pub fn mark(&self, stream: Stream) -> Result<Event, Note> {
        let (own, mut event) = (self.current()?, ptr::null_mut());
        // SAFETY: the driver writes a handle; whoever gave the stream keeps it alive during the call.
        self.ask(unsafe { (own.event)(&raw mut event, 0) })?;
        // SAFETY: as above.
        self.ask(unsafe { (own.record)(event, stream.0 as *mut c_void) })?;
        Ok(Event(event))
    }

    /// Lets what is started on a stream from now on wait for an event.
    pub fn let_wait(&self, stream: Stream, event: &Event) -> Result<(), Note> {
        let own = self.current()?;
        // SAFETY: the event is there, and the stream as in `mark`.
        self.ask(unsafe { (own.after)(stream.0 as *mut c_void, event.0, 0) })
    }

    /// Waits until an event is reached.
    pub fn reach(&self, event: &Event) -> Result<(), Note> {
        let own = self.current()?;
        // SAFETY: the event is there.
        self.ask(unsafe { (own.reach)(event.0) })
    }

    /// Forgets an event; what waits for it goes on doing so.
    pub fn forget(&self, event: Event) {
        if let Ok(own) = self.current() {
            // SAFETY: nobody has it any more.
            let _ = unsafe { (own.destroy)(event.0) };
        }
    }

    /// The seconds between two events, which have been reached.
    pub fn between(&self, start: &Event, end: &Event) -> Result<f64, Note> {
        let (own, mut milliseconds) = (self.current()?, 0.0f32);
        // SAFETY: the events are there.
        self.ask(unsafe { (own.elapsed)(&raw mut milliseconds, start.0, end.0) })?;
        Ok(f64::from(milliseconds) * 1e-3)
    }

    /// Does something, and leaves the context of the calling thread as it was: frameworks have their own.
    pub fn aside<T>(&self, what: impl FnOnce() -> T) -> T {
        let mut before = ptr::null_mut();
        // SAFETY: the driver writes a handle, which is that of a context or null.
        let known = unsafe { (self.functions.current)(&raw mut before) } == 0;
        let done = what();
        if known && before != self.context && !before.is_null() {
            // SAFETY: it was current before.
            let _ = unsafe { (self.functions.set_current)(before) };
        }
        done
    }

    /// The seconds that the device takes for what is started inside, on the default stream.
    pub fn timed(&self, inside: &mut dyn FnMut() -> Result<(), Note>) -> Result<f64, Note> {
        let start = self.mark(Stream::default())?;
        let done = inside();
        let end = self.mark(Stream::default())?;
        self.reach(&end)?;
        let seconds = self.between(&start, &end);
        [start, end].into_iter().for_each(|event| self.forget(event));
        done.and(seconds)
    }
}

/// Code on the device.
pub struct Module<'a> {
    driver: &'a Driver,
    handle: *mut c_void,
}

impl Module<'_> {
    /// The kernel of this name. It stays usable: modules are not unloaded while the process lives unless they are dropped here.
    pub fn kernel(&self, name: &str) -> Result<Function, Note> {
        let (own, mut handle) = (self.driver.current()?, ptr::null_mut());
        let name = CString::new(name).map_err(|error| Note::new(error.to_string()))?;
        // SAFETY: the module is loaded.
        self.driver.ask(unsafe { (own.function)(&raw mut handle, self.handle, name.as_ptr()) })?;
        Ok(Function(handle))
    }

    /// What unloads it later.
    pub fn into_handle(self) -> Handle {
        Handle(self.handle)
    }
}

/// A module to be unloaded.
pub struct Handle(*mut c_void);

// SAFETY: as for functions.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Driver {
    /// Unloads a module.
    pub fn unload(&self, handle: &Handle) {
        if let Ok(own) = self.current() {
            // SAFETY: it was loaded, and whoever had its kernels has gone.
            let _ = unsafe { (own.unload)(handle.0) };
        }
    }
}
