//! The event loop of a JavaScript thread as the executor of the runtime's futures.
//!
//! A future is polled on the JavaScript thread alone: once when its promise is made, and again when its waker was called,
//! which one threadsafe function per environment carries over, however many wakers are called before the loop comes to it.
//! There is no other thread, and nothing is looked at while nothing happens.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use dsh_subprocess::{Error, ErrorKind};
use napi::bindgen_prelude::ToNapiValue;
use napi::{Env, Result, check_status, sys};

use crate::error;

thread_local! {
    /// The executors of this thread's environments. There is one in general; a module that is loaded twice has two.
    static EXECUTORS: RefCell<HashMap<usize, Rc<Executor>>> = RefCell::default();
}

/// A promise that the executor settles.
pub struct Promise(sys::napi_value);

impl ToNapiValue for Promise {
    unsafe fn to_napi_value(_: sys::napi_env, promise: Self) -> Result<sys::napi_value> {
        Ok(promise.0)
    }
}

/// Makes the JavaScript value, or the error, that settles a promise.
type Settlement = Box<dyn FnOnce(Env) -> Result<std::result::Result<sys::napi_value, sys::napi_value>>>;

/// A future that has not answered.
struct Task {
    future: Pin<Box<dyn Future<Output = Settlement>>>,
    waker: Waker,
    woken: Arc<Woken>,
    deferred: sys::napi_deferred,
    /// Keeps the event loop alive, where the promise is to do that.
    _vigil: Option<Vigil>,
}

/// The waker of one task.
struct Woken {
    task: u64,
    /// Whether the task is in the queue already.
    queued: AtomicBool,
    queue: Arc<Queue>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.queue.push(self.task);
        }
    }
}

/// What wakers of any thread leave for the JavaScript thread.
struct Queue(Mutex<Queued>);

struct Queued {
    tasks: Vec<u64>,
    /// Whether the event loop was told and has not come to it yet.
    told: bool,
    /// `None` once the environment is torn down.
    function: Option<ThreadsafeFunction>,
}

/// The handle of the one function that may be called from any thread.
struct ThreadsafeFunction(sys::napi_threadsafe_function);

// SAFETY: `napi_call_threadsafe_function` may be called from any thread. What may not is called with the environment, which
// the JavaScript thread alone has.
unsafe impl Send for ThreadsafeFunction {}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: u64) {
        let mut queued = self.lock();
        let Queued {
            tasks,
            told,
            function,
        } = &mut *queued;
        let Some(function) = function else {
            return;
        };
        tasks.push(task);
        if !*told {
            *told = true;
            // SAFETY: the function is not released while it is here, and taking it away needs the lock.
            unsafe {
                sys::napi_call_threadsafe_function(
                    function.0,
                    ptr::null_mut(),
                    sys::ThreadsafeFunctionCallMode::nonblocking,
                );
            }
        }
    }

    fn take(&self) -> Vec<u64> {
        let mut queued = self.lock();
        queued.told = false;
        std::mem::take(&mut queued.tasks)
    }
}

/// The executor of one environment.
pub(crate) struct Executor {
    env: sys::napi_env,
    queue: Arc<Queue>,
    function: sys::napi_threadsafe_function,
    tasks: RefCell<HashMap<u64, Task>>,
    next: Cell<u64>,
    /// How many keep the event loop alive.
    vigils: Cell<usize>,
}

impl Executor {
    /// Returns the executor of an environment, and makes it at the first call.
    pub(crate) fn of(env: &Env) -> Result<Rc<Self>> {
        let key = env.raw() as usize;
        if let Some(executor) = EXECUTORS.with_borrow(|executors| executors.get(&key).cloned()) {
            return Ok(executor);
        }
        let executor = Rc::new(Self::new(env)?);
        // SAFETY: the environment is the one this thread is in.
        check_status!(unsafe {
            sys::napi_add_env_cleanup_hook(env.raw(), Some(tear_down), env.raw().cast())
        })?;
        EXECUTORS.with_borrow_mut(|executors| executors.insert(key, Rc::clone(&executor)));
        Ok(executor)
    }

    fn new(env: &Env) -> Result<Self> {
        let name = env.create_string("dsh-subprocess")?;
        let mut function = ptr::null_mut();
        // SAFETY: the environment is the one this thread is in, `run` has the type that is asked for, and without a function,
        // a resource and a finalizer the null pointers are allowed.
        check_status!(unsafe {
            sys::napi_create_threadsafe_function(
                env.raw(),
                ptr::null_mut(),
                ptr::null_mut(),
                napi::JsValue::raw(&name),
                0,
                1,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
                Some(run),
                &raw mut function,
            )
        })?;
        // SAFETY: both were just given to this thread. By itself the function would keep the event loop alive for ever.
        check_status!(unsafe { sys::napi_unref_threadsafe_function(env.raw(), function) })?;
        Ok(Self {
            env: env.raw(),
            queue: Arc::new(Queue(Mutex::new(Queued {
                tasks: Vec::new(),
                told: false,
                function: Some(ThreadsafeFunction(function)),
            }))),
            function,
            tasks: RefCell::default(),
            next: Cell::new(0),
            vigils: Cell::new(0),
        })
    }

    /// Makes a promise of what a future answers. It is polled at once. While it has not answered, `vigil` keeps the event loop
    /// alive.
    pub(crate) fn promise<T: ToNapiValue + 'static>(
        &self,
        vigil: Option<Vigil>,
        future: impl Future<Output = std::result::Result<T, Error>> + 'static,
    ) -> Result<Promise> {
        let mut deferred = ptr::null_mut();
        let mut promise = ptr::null_mut();
        // SAFETY: the environment is the one this thread is in: an executor does not leave its thread.
        check_status!(unsafe { sys::napi_create_promise(self.env, &raw mut deferred, &raw mut promise) })?;
        let id = self.next.get();
        self.next.set(id + 1);
        let woken = Arc::new(Woken {
            task: id,
            queued: AtomicBool::new(false),
            queue: Arc::clone(&self.queue),
        });
        let task = Task {
            future: Box::pin(async move {
                let answer = future.await;
                let settlement: Settlement = Box::new(move |env| match answer {
                    // SAFETY: the environment is the one this thread is in.
                    Ok(value) => unsafe { T::to_napi_value(env.raw(), value) }.map(Ok),
                    Err(failure) => error::object(env, &failure).map(Err),
                });
                settlement
            }),
            waker: Waker::from(Arc::clone(&woken)),
            woken,
            deferred,
            _vigil: vigil,
        };
        self.poll(id, task);
        Ok(Promise(promise))
    }

    /// Polls a task that is not among the others meanwhile: what it calls may make others.
    fn poll(&self, id: u64, mut task: Task) {
        // Whoever wakes it from here on means another poll.
        task.woken.queued.store(false, Ordering::Release);
        let mut context = Context::from_waker(&task.waker);
        let polled = catch_unwind(AssertUnwindSafe(|| task.future.as_mut().poll(&mut context)));
        match polled {
            Ok(Poll::Pending) => {
                self.tasks.borrow_mut().insert(id, task);
            }
            Ok(Poll::Ready(settlement)) => self.settle(task.deferred, settlement),
            Err(panic) => {
                let failure = panicked(panic.as_ref());
                self.settle(
                    task.deferred,
                    Box::new(move |env| error::object(env, &failure).map(Err)),
                );
            }
        }
    }

    fn settle(&self, deferred: sys::napi_deferred, settlement: Settlement) {
        let env = Env::from_raw(self.env);
        // A value that cannot be made is told as the error that prevents it; where not even that is possible, the environment
        // is ending, and nobody waits.
        let settled = settlement(env).or_else(|error| {
            let failure = Error::new(ErrorKind::Os, "settle", error.reason.clone());
            error::object(env, &failure).map(Err)
        });
        match settled {
            // SAFETY: the promise was not settled before: its task is gone from the executor with this call.
            Ok(Ok(value)) => unsafe {
                sys::napi_resolve_deferred(self.env, deferred, value);
            },
            // SAFETY: as above.
            Ok(Err(value)) => unsafe {
                sys::napi_reject_deferred(self.env, deferred, value);
            },
            Err(_) => {}
        }
    }

    /// Polls whatever was woken.
    fn run(&self) {
        for id in self.queue.take() {
            let task = self.tasks.borrow_mut().remove(&id);
            if let Some(task) = task {
                self.poll(id, task);
            }
        }
    }

    /// Tells the garbage collector how much memory an object holds that it does not see.
    pub(crate) fn account(&self, change: i64) {
        if self.is_alive() {
            // Only a hint: nothing depends on its success.
            let _ = Env::from_raw(self.env).adjust_external_memory(change);
        }
    }

    /// Counts one more that keeps the event loop alive.
    fn begin_vigil(&self) {
        let vigils = self.vigils.get();
        self.vigils.set(vigils + 1);
        if vigils == 0 {
            // SAFETY: both belong to this thread; after the teardown nobody comes here, since there are no calls from
            // JavaScript any more.
            unsafe {
                sys::napi_ref_threadsafe_function(self.env, self.function);
            }
        }
    }

    fn end_vigil(&self) {
        let vigils = self.vigils.get() - 1;
        self.vigils.set(vigils);
        if vigils == 0 && self.is_alive() {
            // SAFETY: both belong to this thread, and the function was not released.
            unsafe {
                sys::napi_unref_threadsafe_function(self.env, self.function);
            }
        }
    }

    fn is_alive(&self) -> bool {
        self.queue.lock().function.is_some()
    }

    /// The environment ends: nobody will be answered any more. Its runtimes end with the objects that hold them.
    fn close(&self) {
        let function = self.queue.lock().function.take();
        // Their promises belong to an environment that settles nothing any more.
        let tasks = self.tasks.take();
        drop(tasks);
        if let Some(ThreadsafeFunction(function)) = function {
            // SAFETY: it was taken from where all callers find it, so this is its last use.
            unsafe {
                sys::napi_release_threadsafe_function(function, sys::ThreadsafeFunctionReleaseMode::abort);
            }
        }
    }
}

/// Calls back on the JavaScript thread, after a waker called the function.
unsafe extern "C" fn run(env: sys::napi_env, _: sys::napi_value, _: *mut c_void, _: *mut c_void) {
    // Without an environment the function is being torn down.
    if env.is_null() {
        return;
    }
    let executor = EXECUTORS.with_borrow(|executors| executors.get(&(env as usize)).cloned());
    if let Some(executor) = executor {
        executor.run();
    }
}

/// Runs when an environment ends: a worker's, or the process's.
unsafe extern "C" fn tear_down(env: *mut c_void) {
    let executor = EXECUTORS.with_borrow_mut(|executors| executors.remove(&(env as usize)));
    if let Some(executor) = executor {
        executor.close();
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    Error::new(ErrorKind::Os, "poll", format!("a defect of the runtime: {what}"))
}

/// Whether the promises of one tree keep the event loop alive. It can be changed while they are pending.
pub(crate) struct Liveness {
    executor: Rc<Executor>,
    referenced: Cell<bool>,
    pending: Cell<usize>,
}

impl Liveness {
    pub(crate) fn new(executor: Rc<Executor>) -> Rc<Self> {
        Rc::new(Self {
            executor,
            referenced: Cell::new(true),
            pending: Cell::new(0),
        })
    }

    pub(crate) fn executor(&self) -> &Rc<Executor> {
        &self.executor
    }

    pub(crate) fn set(&self, referenced: bool) {
        if self.referenced.replace(referenced) != referenced {
            for _ in 0..self.pending.get() {
                if referenced {
                    self.executor.begin_vigil();
                } else {
                    self.executor.end_vigil();
                }
            }
        }
    }

    /// Begins to keep the event loop alive, as long as the answer lives and the tree is referenced.
    pub(crate) fn vigil(self: &Rc<Self>) -> Vigil {
        self.pending.set(self.pending.get() + 1);
        if self.referenced.get() {
            self.executor.begin_vigil();
        }
        Vigil(Rc::clone(self))
    }
}

/// Keeps the event loop alive until it is dropped, unless its tree is unreferenced.
pub(crate) struct Vigil(Rc<Liveness>);

impl Drop for Vigil {
    fn drop(&mut self) {
        self.0.pending.set(self.0.pending.get() - 1);
        if self.0.referenced.get() {
            self.0.executor.end_vigil();
        }
    }
}
