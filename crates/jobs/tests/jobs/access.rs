//! Item 164: who sees which jobs.

use dsh_jobs::{JobId, JobSession};
use dsh_subprocess::StreamName;
use tokio_util::sync::CancellationToken;

use crate::fixture::{BOUND, OnCancel, Strings, bash, is_unknown, ok, registry};

fn listed(session: &JobSession) -> Vec<String> {
    session.list().iter().map(|info| info.id.to_string()).collect()
}

#[tokio::test]
async fn item_164_a_job_of_another_owner_looks_like_one_that_does_not_exist() {
    let jobs = registry();
    let (mine, other) = (jobs.open("mine").unwrap(), jobs.open("other").unwrap());
    let strings = Strings::new(OnCancel::End);
    let foreign = strings.start(&mine);
    let missing: JobId = "bash-77".parse().unwrap();
    for id in [&foreign, &missing] {
        assert!(is_unknown(other.info(id), id));
        assert!(is_unknown(other.read(id), id));
        assert!(is_unknown(other.read_from(id, &[(StreamName::Stdout, 0)]), id));
        assert!(is_unknown(other.reader(id, StreamName::Stdout), id));
        assert!(is_unknown(other.kill(id), id));
        assert!(is_unknown(
            other.wait(id, BOUND, &CancellationToken::new()).await,
            id
        ));
    }
    assert!(other.list().is_empty());
    assert_eq!(strings.puppet.cancels(), 0);
}

#[tokio::test]
async fn item_164_unowned_jobs_are_open_to_all() {
    let jobs = registry();
    let (first, second) = (jobs.open("first").unwrap(), jobs.open("second").unwrap());
    let mut strings = Strings::new(OnCancel::End);
    let id = jobs.start_unowned(bash("shared"), || ok(strings.work())).unwrap();
    strings.stdout.push(b"for everybody");
    assert_eq!(first.info(&id).unwrap().owner, None);
    let read = second.read_from(&id, &[(StreamName::Stdout, 4)]).unwrap();
    assert_eq!(read.streams[0].text, "everybody");
    second.kill(&id).unwrap();
    assert_eq!(strings.puppet.cancels(), 1);
}

#[tokio::test]
async fn item_164_a_list_has_ones_own_and_the_unowned_jobs_in_the_order_of_their_starts() {
    let jobs = registry();
    let (mine, other) = (jobs.open("mine").unwrap(), jobs.open("other").unwrap());
    let strings: Vec<_> = (0..5).map(|_| Strings::new(OnCancel::End)).collect();
    let unowned = |number: usize| jobs.start_unowned(bash("shared"), || ok(strings[number].work()));
    strings[0].start(&mine);
    unowned(1).unwrap();
    strings[2].start(&other);
    strings[3].start(&mine);
    unowned(4).unwrap();
    assert_eq!(listed(&mine), ["bash-1", "bash-2", "bash-4", "bash-5"]);
    assert_eq!(listed(&other), ["bash-2", "bash-3", "bash-5"]);
}

#[tokio::test]
async fn item_164_an_owner_that_comes_back_sees_nothing_of_what_was_before() {
    let jobs = registry();
    let before = jobs.open("owner").unwrap();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&before);
    drop(before);
    let after = jobs.open("owner").unwrap();
    assert!(is_unknown(after.info(&id), &id));
    assert!(after.list().is_empty());
}

#[test]
fn item_164_ids_have_one_spelling() {
    for text in ["bash-1", "a-b-12", "-5-3", "bash-18446744073709551615"] {
        assert_eq!(text.parse::<JobId>().unwrap().as_str(), text);
    }
    for text in [
        "",
        "bash",
        "bash-",
        "-1",
        "bash-0",
        "bash-01",
        "bash-+1",
        "bash-1 ",
        "bash-18446744073709551616",
    ] {
        let error = text.parse::<JobId>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("`{text}` is no id of a job"))
        );
    }
}
