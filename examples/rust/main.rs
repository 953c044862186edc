// Calls a compiled classifier, linked statically: see README.md.
use std::ffi::{c_char, c_void};
use std::fmt;

#[link(name = "classifier", kind = "static")]
extern "C" {
    static classifier_abi: u32;
    fn classifier_create(threads: i64) -> *mut i64;
    fn classifier_destroy(context: *mut i64);
    fn classifier_run(
        context: *mut i64,
        inputs: *const *const c_void,
        input_dims: *const i64,
        outputs: *mut *mut c_void,
        output_dims: *mut i64,
    ) -> i32;
    fn classifier_error(context: *const i64, buffer: *mut c_char, size: i64) -> i64;
}

const ABI: u32 = 1;
const FEATURES: usize = 4;
const CLASSES: usize = 3;
const THREADS: usize = 1; // the word of a context

#[derive(Debug)]
struct Fault {
    code: i32,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "fault {}: {}", self.code, self.text)
    }
}

/// A context of the model: one run at a time, which `&mut self` makes sure of.
struct Classifier {
    context: *mut i64,
}

// A context is bound to no thread.
unsafe impl Send for Classifier {}

impl Classifier {
    fn new(threads: i64) -> Option<Classifier> {
        let context = unsafe { classifier_create(threads) };
        if context.is_null() {
            None
        } else {
            Some(Classifier { context })
        }
    }

    fn set_threads(&mut self, threads: i64) {
        unsafe { *self.context.add(THREADS) = threads };
    }

    /// The scores of rows of features, and of some classes alone.
    fn run(&mut self, x: &[f32], classes: &[i64]) -> Result<(Vec<f32>, Vec<f32>), Fault> {
        let rows = x.len() / FEATURES;
        let mut scores = vec![0f32; rows * CLASSES];
        let mut picked = vec![0f32; rows * classes.len()];
        let inputs = [x.as_ptr() as *const c_void, classes.as_ptr() as *const c_void];
        let mut outputs = [scores.as_mut_ptr() as *mut c_void, picked.as_mut_ptr() as *mut c_void];
        let input_dims = [rows as i64, FEATURES as i64, classes.len() as i64];
        let mut output_dims = [0i64; 4];
        let code = unsafe {
            classifier_run(
                self.context,
                inputs.as_ptr(),
                input_dims.as_ptr(),
                outputs.as_mut_ptr(),
                output_dims.as_mut_ptr(),
            )
        };
        if code == 0 {
            Ok((scores, picked))
        } else {
            Err(Fault { code, text: self.error() })
        }
    }

    fn error(&self) -> String {
        let size = unsafe { classifier_error(self.context, std::ptr::null_mut(), 0) };
        let mut bytes = vec![0u8; size as usize + 1];
        unsafe { classifier_error(self.context, bytes.as_mut_ptr() as *mut c_char, size + 1) };
        bytes.pop();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Classifier {
    fn drop(&mut self) {
        unsafe { classifier_destroy(self.context) };
    }
}

fn print(what: &str, values: &[f32]) {
    let texts: Vec<String> = values.iter().map(|v| format!(" {:.4}", v)).collect();
    println!("{}{}", what, texts.concat());
}

fn main() {
    assert_eq!(unsafe { classifier_abi }, ABI);
    let mut classifier = Classifier::new(1).expect("there is no memory");
    let x = [1.0, 2.0, 3.0, 4.0, 1.0, 0.0, 0.0, 0.0];
    let (scores, picked) = classifier.run(&x, &[2, 0]).unwrap();
    print("scores of 2 rows:", &scores);
    print("picked:", &picked);
    match classifier.run(&x, &[7, 0]) {
        Ok(_) => std::process::exit(1),
        Err(fault) => println!("{}", fault),
    }
    let many: Vec<f32> = (0..20000 * FEATURES).map(|i| (i % 7) as f32 - 3.0).collect();
    let (alone, _) = classifier.run(&many, &[1]).unwrap();
    classifier.set_threads(2);
    let (together, _) = classifier.run(&many, &[1]).unwrap();
    let equal = alone == together;
    println!("20000 rows on two threads: {}", if equal { "equal" } else { "different" });
    std::process::exit(if equal { 0 } else { 1 });
}
