//! The directories and records that go when the host ends.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use dsh_subprocess_warden::protocol::ToRuntime;

use crate::fixture::{ENOUGH, LONG, Runtime, WAIT_ONCE, ends, open};

fn bytes(path: &Path) -> &[u8] {
    path.to_str().expect("an ordinary name").as_bytes()
}

fn register(runtime: &Runtime, path: &Path) {
    let opened = File::open(path).expect("it is there");
    runtime.send(ToRuntime::Directory(bytes(path)), &[opened.as_fd()]);
}

fn lock(file: &File) -> rustix::io::Result<()> {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
}

/// Ends the host, and waits until the wardens are gone.
fn end(runtime: Runtime) {
    // Whatever was sent before it was taken in.
    let tree = runtime.tree();
    let warden = open(tree.runtime());
    drop((tree, runtime));
    ends(&warden);
}

#[test]
fn a_directory_goes_with_all_that_is_in_it_and_nothing_that_it_links_to() {
    let home = tempfile::tempdir().expect("a directory");
    let kept = home.path().join("kept");
    fs::create_dir(&kept).expect("a directory");
    fs::write(kept.join("file"), "kept").expect("a file");
    let directory = home.path().join("private");
    let deep = directory.join("a/b/c");
    fs::create_dir_all(&deep).expect("directories");
    fs::write(deep.join("file"), "x").expect("a file");
    symlink(&kept, directory.join("link")).expect("a link");
    symlink(kept.join("file"), deep.join("link")).expect("a link");
    symlink("..", deep.join("up")).expect("a link");

    let runtime = Runtime::start(LONG);
    register(&runtime, &directory);
    end(runtime);
    assert!(!directory.exists());
    assert_eq!(fs::read(kept.join("file")).expect("it is kept"), b"kept");
}

#[test]
fn nothing_is_too_many_or_too_deep_or_forbidden_to_be_removed() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("private");
    fs::create_dir(&directory).expect("a directory");
    for number in 0..3000 {
        fs::write(directory.join(number.to_string()), "").expect("a file");
    }
    // As deep as a path can name at once.
    let mut deep = directory.clone();
    for _ in 0..300 {
        deep.push("deep");
        fs::create_dir(&deep).expect("a directory");
        fs::write(deep.join("file"), "").expect("a file");
    }
    let locked = directory.join("locked");
    fs::create_dir(&locked).expect("a directory");
    fs::write(locked.join("file"), "").expect("a file");
    for (path, mode) in [(&locked, 0), (&directory, 0o500)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
    }

    let runtime = Runtime::start(LONG);
    register(&runtime, &directory);
    end(runtime);
    assert!(!directory.exists());
}

#[test]
fn what_was_forgotten_or_replaced_stays() {
    let home = tempfile::tempdir().expect("a directory");
    let [forgotten, replaced] = ["forgotten", "replaced"].map(|name| home.path().join(name));
    let runtime = Runtime::start(LONG);
    for directory in [&forgotten, &replaced] {
        fs::create_dir(directory).expect("a directory");
        register(&runtime, directory);
    }
    runtime.send(ToRuntime::Forget(bytes(&forgotten)), &[]);
    fs::rename(&replaced, home.path().join("moved")).expect("it can be moved");
    fs::create_dir(&replaced).expect("another one");
    fs::write(replaced.join("file"), "").expect("a file");
    end(runtime);
    assert!(forgotten.exists());
    assert!(replaced.join("file").exists());
}

#[test]
fn a_directory_stays_until_the_last_tree_has_ended_and_its_record_is_locked_as_long() {
    let home = tempfile::tempdir().expect("a directory");
    let [directory, record] = ["directory", "record"].map(|name| home.path().join(name));
    fs::create_dir(&directory).expect("a directory");
    let mut runtime = Runtime::start(LONG);
    register(&runtime, &directory);
    let file = File::create_new(&record).expect("a file");
    lock(&file).expect("nobody else knows it");
    runtime.send(ToRuntime::Record(bytes(&record)), &[file.as_fd()]);
    drop(file);
    let tree = runtime.tree();
    let script = format!(
        "trap '[ -d {} ] && echo there; exit 0' TERM; {WAIT_ONCE}",
        directory.display()
    );
    let mut target = tree.run(&script, ENOUGH);
    assert_eq!(target.line(), "ready");
    let other = File::open(&record).expect("it is there");
    assert!(lock(&other).is_err(), "the warden holds the lock");
    let warden = open(tree.runtime());
    runtime.host.kill();
    ends(&warden);
    assert_eq!(target.rest(), "there\n");
    assert!(!directory.exists());
    assert!(!record.exists());
    lock(&other).expect("nobody holds it any more");
}
