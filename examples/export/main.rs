//! Calls the exported network `scorer`: 16 numbers from standard input, 4 scores to standard output.

use std::error::Error;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::io::{read_to_string, stdin};
use std::ptr::{addr_of, null_mut};

/// `struct scorer_tensors` of scorer.h: inputs, then outputs.
#[repr(C)]
struct Tensors {
    x: *const f32,
    scores: *mut f32,
}

extern "C" {
    static scorer_network: u8; // its address is all that is used
    fn asmdnn_create(
        context: *mut *mut c_void,
        network: *const u8,
        threads: c_int,
        scratch: *mut c_void,
    ) -> *const c_char;
    fn asmdnn_run(context: *mut c_void, tensors: *const Tensors) -> *const c_char;
    fn asmdnn_destroy(context: *mut c_void) -> *const c_char;
}

/// The runtime returns NULL, or what is wrong in one sentence.
fn check(wrong: *const c_char) -> Result<(), String> {
    if wrong.is_null() {
        return Ok(());
    }
    // The sentence stays until this thread's next call, so it is copied.
    Err(unsafe { CStr::from_ptr(wrong) }
        .to_string_lossy()
        .into_owned())
}

/// A context. One thread at a time may use it, which `&mut self` ensures.
struct Scorer(*mut c_void);

impl Scorer {
    /// 0 threads: as many as the network was exported for.
    fn new(threads: c_int) -> Result<Self, String> {
        let mut context = null_mut();
        check(unsafe {
            asmdnn_create(&mut context, addr_of!(scorer_network), threads, null_mut())
        })?;
        Ok(Scorer(context))
    }

    fn run(&mut self, x: &[f32; 16]) -> Result<[f32; 4], String> {
        let mut scores = [0.0; 4];
        let tensors = Tensors {
            x: x.as_ptr(),
            scores: scores.as_mut_ptr(),
        };
        check(unsafe { asmdnn_run(self.0, &tensors) })?;
        Ok(scores)
    }
}

impl Drop for Scorer {
    fn drop(&mut self) {
        unsafe { asmdnn_destroy(self.0) };
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let text = read_to_string(stdin())?;
    let numbers = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<Vec<f32>, _>>()?;
    let x = numbers.try_into().map_err(|_| "16 numbers are needed")?;
    for score in Scorer::new(0)?.run(&x)? {
        println!("{score}");
    }
    Ok(())
}
