//! Streams that are spilled to a file: case O14 and items 44 to 53.

use std::fs;
use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dsh_subprocess::{
    Collect, ErrorKind, Output, OutputReader, Process, SpawnSpec, Spill, SpillLife, SpillState,
    SubprocessRuntime,
};
use tempfile::TempDir;

use crate::fixture::{Case, Host, Tier, finished, line_of, numbered, on_each_tier, within};

const TOTAL: usize = 1 << 20;

fn spilled(mut spec: SpawnSpec, max_bytes: u64, life: SpillLife) -> SpawnSpec {
    let max_bytes = NonZeroU64::new(max_bytes).expect("not zero");
    spec.stdout = Output::Collect(Collect {
        max_bytes: 1000,
        head_bytes: 0,
        spill: Some(Spill { max_bytes, life }),
    });
    spec
}

fn output(process: &Process) -> &OutputReader {
    process.collected_stdout().expect("it is collected")
}

fn location(output: &OutputReader) -> PathBuf {
    match output.spill() {
        SpillState::Available(stream) => stream.location.as_local_path().to_owned(),
        other => panic!("no spill: {other:?}"),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// All spilled files below a directory; the mark of a living owner is none.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "log") {
            found.push(path);
        }
    }
    found
}

fn case(tier: Tier) -> (Case, TempDir) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let case = Case::with(tier, |builder| builder.spill_parent(parent.path()));
    (case, parent)
}

on_each_tier! {
    item_44_a_spill_is_the_complete_stream_in_a_private_file,
    item_39_a_stream_within_its_window_makes_no_file,
    item_45_a_spill_is_named_after_its_host_its_number_and_its_stream,
    item_46_a_stream_above_the_cap_has_no_file,
    item_47_a_first_overflow_above_the_cap_makes_no_file_at_all,
    o14_spills_end_with_their_handle_or_their_runtime_or_are_kept,
    o14_the_runtimes_total_is_honoured,
    item_52_a_removed_spill_directory_costs_only_the_file,
    item_182_an_unusable_spill_parent_fails_no_run,
    item_53_a_file_size_limit_withdraws_the_spill,
    item_52_a_full_file_system_withdraws_the_spill,
    o17_a_spill_survives_a_termination,
    item_49_a_complete_spill_holds_no_descriptor_and_is_read_all_the_same,
}

/// A stream above its window is in the file as a whole, private to its owner, and nowhere else.
fn item_44_a_spill_is_the_complete_stream_in_a_private_file(tier: Tier) {
    let (case, parent) = case(tier);
    let work = tempfile::tempdir().expect("a temporary directory");
    let mut spec = spilled(
        case.probe(["flood", &TOTAL.to_string()]),
        1 << 30,
        SpillLife::Runtime,
    );
    spec.cwd = work.path().into();
    let (outcome, process) = case.run(spec);
    assert!(outcome.success());
    let path = location(output(&process));
    assert!(path.starts_with(parent.path()), "{}", path.display());
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().expect("it is in a directory")), 0o700);
    assert!(fs::read(&path).expect("it is there") == numbered(TOTAL));
    let middle = within(output(&process).read_spilled(500_000, 1000)).expect("it is readable");
    assert_eq!(middle[..], numbered(501_000)[500_000..]);
    let end = within(output(&process).read_spilled(TOTAL as u64 - 10, 1000)).expect("it is readable");
    assert_eq!(end.len(), 10);
    assert!(files(work.path()).is_empty(), "nothing in the working directory");
}

/// What fits in the window makes no file.
fn item_39_a_stream_within_its_window_makes_no_file(tier: Tier) {
    let (case, parent) = case(tier);
    let (_, process) = case.run(spilled(
        case.probe(["flood", "1000"]),
        1 << 30,
        SpillLife::Runtime,
    ));
    assert_eq!(output(&process).spill(), SpillState::None);
    assert!(files(parent.path()).is_empty());
    let error = within(output(&process).read_spilled(0, 10)).expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::SpillUnavailable);
}

/// A stream longer than its file may be has no file; the tail stays.
fn item_46_a_stream_above_the_cap_has_no_file(tier: Tier) {
    let (case, parent) = case(tier);
    let (outcome, process) = case.run(spilled(
        case.probe(["flood", &TOTAL.to_string()]),
        100_000,
        SpillLife::Runtime,
    ));
    assert!(outcome.success());
    assert!(
        matches!(output(&process).spill(), SpillState::Withdrawn(_)),
        "{:?}",
        output(&process).spill()
    );
    assert!(files(parent.path()).is_empty());
    assert_eq!(output(&process).total(), TOTAL as u64);
    assert_eq!(output(&process).snapshot().tail, numbered(TOTAL)[TOTAL - 1000..]);
}

/// Two streams of two trees: each has a name of its own, which tells whose it is, in one directory that others cannot enter.
fn item_45_a_spill_is_named_after_its_host_its_number_and_its_stream(tier: Tier) {
    let (case, parent) = case(tier);
    let both = r#""$PROBE" flood 5000; "$PROBE" flood 5000 --stderr"#;
    let mut spec = spilled(case.bash(both), 1 << 30, SpillLife::Runtime);
    spec.stderr = dsh_subprocess::ErrorOutput::Own(spec.stdout.clone());
    let (_, one) = case.run(spec.clone());
    let (_, other) = case.run(spec);
    let mut numbers = std::collections::BTreeSet::new();
    let mut directories = std::collections::BTreeSet::new();
    for process in [&one, &other] {
        for (label, reader) in [
            ("stdout", output(process)),
            ("stderr", process.collected_stderr().expect("it is collected")),
        ] {
            let path = location(reader);
            let name = path
                .file_name()
                .expect("it has one")
                .to_string_lossy()
                .into_owned();
            let rest = name
                .strip_prefix(&format!("dsh-subprocess-{}-", std::process::id()))
                .unwrap_or_else(|| panic!("{name}"));
            let rest = rest
                .strip_suffix(&format!("-{label}.log"))
                .unwrap_or_else(|| panic!("{name}"));
            let (number, random) = rest.split_once('-').unwrap_or_else(|| panic!("{name}"));
            assert!(number.bytes().all(|digit| digit.is_ascii_digit()), "{name}");
            assert!(numbers.insert(number.to_owned()), "{name}: used twice");
            assert_eq!(random.len(), 12, "{name}");
            assert!(
                random
                    .bytes()
                    .all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit)),
                "{name}"
            );
            assert_eq!(mode(&path), 0o600);
            directories.insert(path.parent().expect("it is in a directory").to_owned());
        }
    }
    assert_eq!(directories.len(), 1, "{directories:?}");
    let directory = directories.first().expect("one");
    assert_eq!(mode(directory), 0o700);
    assert_eq!(directory.parent(), Some(parent.path()));
}

/// What cannot fit is not begun: not even the directory is there.
fn item_47_a_first_overflow_above_the_cap_makes_no_file_at_all(tier: Tier) {
    let (case, parent) = case(tier);
    // One write of several pages comes as pieces of at least one: each is longer than the file may be.
    let (outcome, process) = case.run(spilled(case.probe(["flood", "60000"]), 1500, SpillLife::Runtime));
    assert!(outcome.success());
    let state = output(&process).spill();
    assert!(matches!(state, SpillState::Withdrawn(_)), "{state:?}");
    assert_eq!(output(&process).total(), 60_000);
    // A runtime's directory stays as long as the runtime, so none that was made can have gone.
    assert_eq!(fs::read_dir(parent.path()).expect("it is ours").count(), 0);
}

/// Each life ends when it says.
fn o14_spills_end_with_their_handle_or_their_runtime_or_are_kept(tier: Tier) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let home = tempfile::tempdir().expect("a temporary directory");
    // It is made, private, when it is first needed.
    let keep = home.path().join("kept");
    let case = Case::with(tier, |builder| {
        builder.spill_parent(parent.path()).kept_spills(&keep)
    });
    let flood = |life| spilled(case.probe(["flood", &TOTAL.to_string()]), 1 << 30, life);

    let (_, process) = case.run(flood(SpillLife::Handle));
    let reader = output(&process).clone();
    let of_handle = location(&reader);
    drop(process);
    assert!(of_handle.exists(), "a reader can still need it");
    drop(reader);
    crate::fixture::eventually("the file goes with its last reader", || !of_handle.exists());

    let (_, process) = case.run(flood(SpillLife::Runtime));
    let of_runtime = location(output(&process));
    drop(process);
    assert!(of_runtime.exists());

    let (_, process) = case.run(flood(SpillLife::Keep));
    let kept = location(output(&process));
    drop(process);
    assert!(kept.starts_with(&keep), "{}", kept.display());

    within(case.runtime.dispose()).expect("all trees end");
    assert!(fs::read(&kept).expect("it is kept") == numbered(TOTAL));
    assert_eq!(mode(&kept), 0o600);
    assert!(files(parent.path()).is_empty(), "{:?}", files(parent.path()));
    assert_eq!(
        fs::read_dir(parent.path()).expect("it is ours").count(),
        0,
        "the runtime's directory is gone, too"
    );
}

/// The runtime's total is used by the newest: the oldest settled one goes first, however many have gone before.
fn o14_the_runtimes_total_is_honoured(tier: Tier) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let total = 5 * (TOTAL as u64) / 2;
    let case = Case::with(tier, |builder| {
        builder.spill_parent(parent.path()).spill_total(total)
    });
    let mut streams = Vec::new();
    for _ in 0..6 {
        let flood = case.probe(["flood", &TOTAL.to_string()]);
        streams.push(case.run(spilled(flood, 1 << 30, SpillLife::Runtime)).1);
        let sizes: u64 = files(parent.path())
            .iter()
            .map(|path| fs::metadata(path).expect("it is there").len())
            .sum();
        assert!(sizes <= total, "{sizes} bytes after {} streams", streams.len());
    }
    let (gone, there) = streams.split_at(4);
    for process in there {
        assert!(location(output(process)).exists());
    }
    for process in gone {
        let error = within(output(process).read_spilled(0, 10)).expect_err("its file is gone");
        assert_eq!(error.kind(), ErrorKind::SpillUnavailable, "{error}");
        let state = output(process).spill();
        assert!(matches!(state, SpillState::Withdrawn(_)), "{state:?}");
    }
}

/// A directory removed under a running stream costs the file, never the run; the next stream has one again.
fn item_52_a_removed_spill_directory_costs_only_the_file(tier: Tier) {
    let (case, parent) = case(tier);
    let mut spec = spilled(
        case.bash(r#""$PROBE" flood 500000; echo; echo half >&2; read -r go; exec "$PROBE" flood 500000"#),
        1 << 30,
        SpillLife::Runtime,
    );
    spec.stdin = dsh_subprocess::Stdin::Pipe;
    let mut process = case.spawn(spec);
    let errors = process.collected_stderr().expect("it is collected");
    within(errors.changed(0));
    let directory = location_when_there(output(&process))
        .parent()
        .expect("it is in a directory")
        .to_owned();
    fs::remove_dir_all(&directory).expect("it is ours");
    let mut input = process.stdin().expect("it is a pipe");
    within(tokio::io::AsyncWriteExt::write_all(&mut input, b"go\n")).expect("the child reads");
    assert!(finished(&process).success());
    assert_eq!(output(&process).total(), 1_000_001);
    assert_eq!(output(&process).snapshot().tail, numbered(500_000)[499_000..]);
    // Never a path that is not there.
    if let SpillState::Available(stream) = output(&process).spill() {
        assert!(stream.location.as_local_path().exists());
    }
    let (_, next) = case.run(spilled(
        case.probe(["flood", &TOTAL.to_string()]),
        1 << 30,
        SpillLife::Runtime,
    ));
    assert!(fs::read(location(output(&next))).expect("it is there") == numbered(TOTAL));
    drop(parent);
}

/// A place that never was fails no spawn, and no run that wanted no file.
fn item_182_an_unusable_spill_parent_fails_no_run(tier: Tier) {
    let case = Case::with(tier, |builder| builder.spill_parent("/nonexistent/parent"));
    let (outcome, _) = case.run(case.probe(["flood", &TOTAL.to_string()]));
    assert!(outcome.success());
    let (outcome, process) = case.run(spilled(
        case.probe(["flood", &TOTAL.to_string()]),
        1 << 30,
        SpillLife::Runtime,
    ));
    assert!(outcome.success());
    assert!(
        matches!(output(&process).spill(), SpillState::Withdrawn(_)),
        "{:?}",
        output(&process).spill()
    );
    assert_eq!(output(&process).total(), TOTAL as u64);
}

/// A file that may not grow (`EFBIG`) is withdrawn; a short write is never taken for a whole one.
fn item_53_a_file_size_limit_withdraws_the_spill(tier: Tier) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let report = Host::new(tier)
        .under(["env", "--ignore-signal=XFSZ"])
        .peculiar("--fsize=300001")
        .peculiar(format!("--spill-parent={}", parent.path().display()))
        .report([
            "run",
            "--max-bytes=64",
            "--spill=1000000000",
            "/bin/sh",
            "-c",
            "yes 2>/dev/null | head -c 1000000",
        ]);
    assert_withdrawn(&report, parent.path());
}

/// A full file system (`ENOSPC`), in a mount namespace of the host's own.
fn item_52_a_full_file_system_withdraws_the_spill(tier: Tier) {
    // Entering a user namespace gives an ordinary user the mount; a control group is root's in either case.
    let unshare: &[&str] = match tier {
        Tier::Cgroup => &["unshare", "--mount"],
        Tier::Reaper | Tier::ProcessGroup => &["unshare", "--map-root-user", "--mount"],
    };
    let parent = tempfile::tempdir().expect("a temporary directory");
    let mount = format!(
        "mount -t tmpfs -o size=256k spill {} && exec \"$@\"",
        parent.path().display()
    );
    let report = Host::new(tier)
        .under(unshare.iter().copied())
        .under(["sh", "-c", &mount, "sh"])
        .peculiar(format!("--spill-parent={}", parent.path().display()))
        .report([
            "run",
            "--max-bytes=64",
            "--spill=1000000000",
            "/bin/sh",
            "-c",
            "yes 2>/dev/null | head -c 1000000",
        ]);
    assert_withdrawn(&report, parent.path());
}

/// A termination keeps what was captured, file included (O17).
fn o17_a_spill_survives_a_termination(tier: Tier) {
    let (case, _parent) = case(tier);
    let script = r#""$PROBE" flood 5000000; echo; echo captured; exec sleep 300"#;
    let process = case.spawn(spilled(case.bash(script), 1 << 30, SpillLife::Runtime));
    line_of(&process, "captured");
    within(process.terminate()).expect("the tree ends");
    assert!(finished(&process).signal().is_some());
    let file = fs::read(location(output(&process))).expect("it is there");
    assert_eq!(file.len(), 5_000_010);
    assert!(file[..5_000_000] == numbered(5_000_000) && file.ends_with(b"captured\n"));
}

/// The file is made by the runtime's own thread, in its own time.
fn location_when_there(output: &OutputReader) -> PathBuf {
    crate::fixture::eventually("the spill is there", || {
        matches!(output.spill(), SpillState::Available(_))
    });
    location(output)
}

#[track_caller]
fn assert_withdrawn(report: &crate::fixture::Report, parent: &Path) {
    assert_eq!(report.get("outcome"), "exited with code 0");
    assert_eq!(report.get("stdout-total"), "1000000");
    assert!(
        report.get("stdout-spill").starts_with("withdrawn "),
        "{}",
        report.get("stdout-spill")
    );
    assert_eq!(report.get("gone"), "true");
    assert_eq!(report.get("disposed"), "true");
    assert!(files(parent).is_empty(), "{:?}", files(parent));
}

/// A host may have thousands of complete spills. What is read from one is that file, not another that has its name by now.
fn item_49_a_complete_spill_holds_no_descriptor_and_is_read_all_the_same(tier: Tier) {
    let held = |directory: &Path| {
        let descriptors = fs::read_dir("/proc/self/fd").expect("/proc is there");
        descriptors
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| {
                target.starts_with(directory) && target.extension().is_some_and(|name| name == "log")
            })
            .count()
    };
    for life in [SpillLife::Handle, SpillLife::Runtime] {
        let (case, parent) = case(tier);
        let spec = || spilled(case.probe(["flood", &TOTAL.to_string()]), 1 << 30, life);
        let processes: Vec<Process> = (0..5).map(|_| case.run(spec()).1).collect();
        assert_eq!(held(parent.path()), 0, "{life:?}");
        for process in &processes {
            let read = within(output(process).read_spilled(10, 5)).expect("it is there");
            let file = fs::read(location(output(process))).expect("it is there");
            assert_eq!((&read[..], file.len()), (&file[10..15], TOTAL));
        }
        assert_eq!(held(parent.path()), 0, "{life:?}");

        let path = location(output(&processes[0]));
        fs::rename(&path, parent.path().join("moved")).expect("it is ours");
        fs::write(&path, "somebody else's").expect("the directory is ours");
        let error = within(output(&processes[0]).read_spilled(0, 5)).expect_err("it is another file");
        assert_eq!(error.kind(), ErrorKind::Os, "{error}");
        drop(processes);
        within(case.runtime.dispose()).expect("nothing is left");
        assert!(path.exists(), "it was not made here");
    }
}
