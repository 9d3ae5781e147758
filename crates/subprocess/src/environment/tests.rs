//! The contract's section A, and what must hold for any environment.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{
    DropReason, EnvOverlay, Environment, NameCase, SENSITIVE_ENV_PATTERN, Scrub, ScrubRule, Scrubbed,
    WorldString, merge,
};

fn scrub(pairs: &[(&str, &str)]) -> Scrubbed {
    scrub_with(&Scrub::default(), pairs)
}

fn scrub_with(scrub: &Scrub, pairs: &[(&str, &str)]) -> Scrubbed {
    scrub.apply(pairs.iter().map(|&(name, value)| (name.into(), value.into())))
}

fn left(environment: &Environment) -> BTreeMap<String, String> {
    environment
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

fn reason(name: &str, value: &str) -> Option<DropReason> {
    scrub(&[(name, value)])
        .dropped
        .first()
        .map(|dropped| dropped.reason)
}

/// What a developer's session has, none of it a credential.
const ORDINARY: &[(&str, &str)] = &[
    ("PATH", "/home/ada/.cargo/bin:/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/home/ada"),
    ("USER", "ada"),
    ("LOGNAME", "ada"),
    ("SHELL", "/bin/zsh"),
    ("TERM", "xterm-256color"),
    ("COLORTERM", "truecolor"),
    ("LANG", "de_DE.UTF-8"),
    ("LC_TIME", "C.UTF-8"),
    ("LC_ALL", "C"),
    ("TMPDIR", "/var/tmp"),
    ("PWD", "/srv/x"),
    ("OLDPWD", "/srv"),
    ("TZ", "Europe/Berlin"),
    ("SSH_AUTH_SOCK", "/run/user/1000/ssh-agent"),
    ("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22"),
    ("SSH_ASKPASS", "/usr/bin/ksshaskpass"),
    ("GIT_ASKPASS", "/usr/lib/askpass"),
    ("GPG_TTY", "/dev/pts/3"),
    ("XAUTHORITY", "/home/ada/.Xauthority"),
    ("XDG_SESSION_ID", "3"),
    ("XDG_RUNTIME_DIR", "/run/user/1000"),
    ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
    ("XKB_DEFAULT_LAYOUT", "de"),
    ("KEYBOARD_LAYOUT", "de"),
    ("KEYTIMEOUT", "1"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "32000"),
    ("KUBECONFIG", "/home/ada/.kube/config"),
    ("PGPASSFILE", "/home/ada/.pgpass"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/sa.json"),
    ("AWS_SHARED_CREDENTIALS_FILE", "/home/ada/.aws/credentials"),
    ("OS_AUTH_URL", "https://keystone:5000/v3"),
    ("I_MPI_AUTH_METHOD", "munge"),
    ("PULSE_COOKIE", "/home/ada/.config/pulse/cookie"),
    ("NO_PROXY", "localhost,127.0.0.1,.corp"),
    ("http_proxy", "http://proxy:3128"),
    ("GOPROXY", "https://proxy.golang.org,direct"),
    ("GOPRIVATE", "*.corp"),
    ("GIT_AUTHOR_EMAIL", "ada@example.com"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
    ("DOCKER_HOST", "ssh://ada@build"),
    ("CVSROOT", ":pserver:anoncvs@host:/cvs"),
    (
        "npm_config_user_agent",
        "npm/10.2.4 node/v20.11.0 linux x64 workspaces/false",
    ),
    ("PIP_INDEX_URL", "https://index.example/simple"),
    (
        "LS_COLORS",
        "rs=0:di=01;34:ln=01;36:*.tar=01;31:*.key=00;33:*.pwd=00",
    ),
    ("LESSOPEN", "| /usr/bin/lesspipe %s"),
    (
        "PS1",
        r"\[\e]0;\u@\h: \w\a\]${debian_chroot:+($debian_chroot)}\u@\h:\w\$ ",
    ),
    (
        "PROMPT_COMMAND",
        r#"printf "\033]0;%s@%s:%s\007" "${USER}" "${HOSTNAME%%.*}" "${PWD/#$HOME/\~}""#,
    ),
    ("HISTIGNORE", "*password=*:*token=*"),
    ("JAVA_OPTS", "-Xmx1g -Dfile.encoding=UTF-8"),
    (
        "BASH_FUNC_module%%",
        "() {  local token=$1; eval $(modulecmd bash $token)\n}",
    ),
    ("EMPTY", ""),
];

#[test]
fn item_1_the_four_words_and_the_managed_prefix_are_dropped_in_any_case_and_place() {
    for name in [
        "KEY",
        "ApiKey",
        "x_password_y",
        "Secret",
        "mytokens",
        "MONKEY",
        "AWS_SECRET_ACCESS_KEY",
    ] {
        assert_eq!(reason(name, "x"), Some(DropReason::SensitiveName), "{name}");
    }
    for name in ["DSH_HOME", "dsh_shell", "Dsh_X", "DSH_"] {
        assert_eq!(reason(name, "x"), Some(DropReason::ManagedName), "{name}");
    }
    for name in ["XDSH_A", "DSH", "DSHELL", "KE_Y"] {
        assert_eq!(reason(name, "x"), None, "{name}");
    }
    assert_eq!(SENSITIVE_ENV_PATTERN, "KEY|PASSWORD|SECRET|TOKEN");
}

#[cfg(unix)]
#[test]
fn item_1_what_is_left_of_the_parent_is_the_parents_own() {
    let now: BTreeMap<_, _> = std::env::vars_os().collect();
    let scrubbed = Scrub::default().apply_to_parent();
    for (name, value) in scrubbed.environment.os_pairs() {
        let is_clean = scrubbed.cleaned.iter().any(|cleaned| cleaned.as_os_str() == name);
        assert!(is_clean || now.get(name).is_some_and(|ambient| ambient == value));
    }
    assert_eq!(crate::scrubbed_parent_env(), scrubbed.environment);
    assert_eq!(crate::child_env(&EnvOverlay::new()), scrubbed.environment);
}

#[test]
fn item_2_what_programs_need_survives_unchanged() {
    let scrubbed = scrub(ORDINARY);
    assert_eq!(scrubbed.dropped, []);
    assert_eq!(scrubbed.cleaned, Vec::<WorldString>::new());
    assert_eq!(scrubbed.environment.len(), ORDINARY.len());
    for (name, value) in ORDINARY {
        assert_eq!(scrubbed.environment.get(*name), Some(&(*value).into()), "{name}");
    }
}

#[test]
fn item_2_credentials_under_other_names_are_dropped() {
    for name in [
        "BORG_PASSPHRASE",
        "PASSWD",
        "SMTP_PASS",
        "MYSQL_PWD",
        "BIND_PW",
        "GIT_CREDENTIALS",
        "CREDENTIAL",
        "npm_config__auth",
        "DOCKER_AUTH_CONFIG",
        "AUTH_HEADER",
        "REDISCLI_AUTH",
        "COMPOSER_AUTH",
        "SESSION_COOKIE",
        "BEARER",
        "SSHPASS",
        "PRIVATE_PEM",
        "AZURE_DEVOPS_EXT_PAT",
        "SLURM_JWT",
        "DIRENV_DIFF",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    ] {
        assert_eq!(reason(name, "x"), Some(DropReason::CredentialName), "{name}");
        let scrub = Scrub::default().without(ScrubRule::ExtraNames);
        assert_eq!(scrub.name_is_dropped(name.as_bytes()), None, "{name}");
    }
}

#[test]
fn item_3_explicit_entries_merge_after_the_scrub_whatever_their_name() {
    let ambient = scrub(&[("X_TOKEN", "ambient"), ("DSH_HOME", "ambient"), ("A", "1")]).environment;
    let overlay = EnvOverlay::from([
        ("X_TOKEN".into(), Some("explicit".into())),
        ("DSH_HOME".into(), Some("explicit".into())),
        ("DATABASE_URL".into(), Some("postgres://u:p@h/".into())),
    ]);
    for case in [NameCase::Exact, NameCase::Insensitive] {
        let child = left(&merge(ambient.clone(), &overlay, case));
        assert_eq!(child["X_TOKEN"], "explicit");
        assert_eq!(child["DSH_HOME"], "explicit");
        assert_eq!(child["DATABASE_URL"], "postgres://u:p@h/");
        assert_eq!(child["A"], "1");
    }
}

#[test]
fn item_4_a_tombstone_removes_and_may_name_what_is_absent() {
    let ambient = Environment::from_iter([("A".into(), "1".into()), ("B".into(), "2".into())]);
    let overlay = EnvOverlay::from([("A".into(), None), ("ABSENT".into(), None)]);
    for case in [NameCase::Exact, NameCase::Insensitive] {
        assert_eq!(
            left(&merge(ambient.clone(), &overlay, case)),
            BTreeMap::from([("B".into(), "2".into())])
        );
    }
}

#[test]
fn item_5_case_counts_on_posix_and_not_on_windows() {
    let ambient = Environment::from_iter([
        ("PATH".into(), "old".into()),
        ("path".into(), "older".into()),
        ("GRÖSSE".into(), "old".into()),
        (WorldString::from(&b"x\xff"[..]), "old".into()),
    ]);
    let overlay = EnvOverlay::from([
        ("Path".into(), Some("new".into())),
        ("grösse".into(), Some("new".into())),
        (WorldString::from(&b"X\xff"[..]), None),
    ]);
    let windows = merge(ambient.clone(), &overlay, NameCase::Insensitive);
    assert_eq!(
        left(&windows),
        BTreeMap::from([("Path".into(), "new".into()), ("grösse".into(), "new".into())])
    );
    assert_eq!(
        windows.find("PATH", NameCase::Insensitive).unwrap().0,
        &"Path".into()
    );
    let posix = merge(ambient, &overlay, NameCase::Exact);
    assert_eq!(posix.len(), 6);
    assert_eq!(posix.get("PATH"), Some(&"old".into()));
    assert_eq!(posix.find("pATH", NameCase::Exact), None);
}

#[test]
fn item_5_removing_one_spelling_and_setting_another_sets_it() {
    let ambient = Environment::from_iter([("PATH".into(), "old".into())]);
    for (removed, set) in [("PATH", "Path"), ("path", "Path")] {
        let overlay = EnvOverlay::from([(removed.into(), None), (set.into(), Some("new".into()))]);
        let child = merge(ambient.clone(), &overlay, NameCase::Insensitive);
        assert_eq!(left(&child), BTreeMap::from([("Path".into(), "new".into())]));
    }
    let twice = EnvOverlay::from([
        ("PATH".into(), Some("first".into())),
        ("Path".into(), Some("second".into())),
    ]);
    assert_eq!(
        left(&merge(ambient, &twice, NameCase::Insensitive)),
        BTreeMap::from([("PATH".into(), "first".into())])
    );
}

#[test]
fn item_6_term_is_not_touched() {
    assert_eq!(
        scrub(&[("TERM", "dumb")]).environment.get("TERM"),
        Some(&"dumb".into())
    );
    assert!(!scrub(&[]).environment.contains("TERM"));
}

#[test]
fn item_7_malformed_ambient_entries_are_dropped() {
    for (name, value) in [
        ("", "x"),
        ("=C:", "C:\\"),
        ("A=B", "x"),
        ("A\0", "x"),
        ("A", "x\0y"),
    ] {
        assert_eq!(reason(name, value), Some(DropReason::Malformed), "{name:?}");
    }
}

#[cfg(unix)]
#[test]
fn item_8_the_same_scrub_serves_other_spawners() {
    let expected = scrub(&[("A", "1"), ("B_TOKEN", "2"), ("C", "\u{e9} x")]).environment;
    let output = std::process::Command::new("/usr/bin/env")
        .env_clear()
        .envs(expected.os_pairs())
        .output()
        .expect("env(1) runs");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "A=1\nC=\u{e9} x\n");
}

#[test]
fn item_186_proxies_survive_without_credentials_in_each_spelling() {
    let scrubbed = scrub(&[
        ("http_proxy", "http://ada:pw@proxy:3128"),
        ("HTTPS_PROXY", "http://ada:p%40w@proxy:3128/"),
        ("All_Proxy", "socks5h://proxy:1080"),
        ("no_proxy", "localhost"),
    ]);
    assert_eq!(scrubbed.dropped, []);
    assert_eq!(scrubbed.cleaned, ["HTTPS_PROXY".into(), "http_proxy".into()]);
    let left = left(&scrubbed.environment);
    assert_eq!(left["http_proxy"], "http://proxy:3128");
    assert_eq!(left["HTTPS_PROXY"], "http://proxy:3128/");
    assert_eq!(left["All_Proxy"], "socks5h://proxy:1080");
    assert_eq!(left["no_proxy"], "localhost");
}

#[test]
fn o25_neither_too_little_nor_too_much() {
    let secrets = [
        ("OPENAI_API_KEY", "v"),
        ("ANTHROPIC_AUTH_TOKEN", "v"),
        ("AWS_SECRET_ACCESS_KEY", "v"),
        ("GITHUB_TOKEN", "v"),
        ("DSH_API", "v"),
        ("DATABASE_URL", "postgres://ada:hunter2@db/x"),
    ];
    let scrubbed = scrub(&[ORDINARY, &secrets].concat());
    for (name, value) in ORDINARY {
        assert_eq!(scrubbed.environment.get(*name), Some(&(*value).into()), "{name}");
    }
    assert_eq!(scrubbed.environment.len(), ORDINARY.len() + 1);
    assert_eq!(
        scrubbed.environment.get("DATABASE_URL"),
        Some(&"postgres://db/x".into())
    );
    let names: Vec<_> = scrubbed
        .dropped
        .iter()
        .map(|dropped| dropped.name.to_string())
        .collect();
    assert_eq!(
        names,
        [
            "ANTHROPIC_AUTH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "DSH_API",
            "GITHUB_TOKEN",
            "OPENAI_API_KEY"
        ]
    );

    // One server's variable reaches that server alone, and an overridden PATH is the one there is.
    let overlay = EnvOverlay::from([
        ("GITHUB_TOKEN".into(), Some("one".into())),
        ("PATH".into(), Some("/x".into())),
    ]);
    let one = merge(scrubbed.environment.clone(), &overlay, NameCase::Exact);
    assert_eq!(one.get("GITHUB_TOKEN"), Some(&"one".into()));
    assert_eq!(one.get("PATH"), Some(&"/x".into()));
    assert!(!merge(scrubbed.environment, &EnvOverlay::new(), NameCase::Exact).contains("GITHUB_TOKEN"));
}

#[test]
fn rules_are_switched_one_by_one() {
    let token = format!("ghp_{}", "A1".repeat(18));
    for (rule, name, value) in [
        (ScrubRule::ExtraNames, "SMTP_PASS", "x"),
        (ScrubRule::ValueShapes, "X", token.as_str()),
        (ScrubRule::UrlCredentials, "X", "https://u:p@h/"),
    ] {
        let without = scrub_with(&Scrub::default().without(rule), &[(name, value)]);
        assert_eq!(
            left(&without.environment),
            BTreeMap::from([(name.to_owned(), value.to_owned())]),
            "{rule:?}"
        );
        let alone = scrub_with(&Scrub::minimal().with(rule), &[(name, value)]).environment;
        assert_ne!(alone, without.environment, "{rule:?}");
    }
    let strict = Scrub::default().without(ScrubRule::HarmlessNames);
    assert_eq!(
        strict.name_is_dropped(b"TOKENIZERS_PARALLELISM"),
        Some(DropReason::SensitiveName)
    );
}

#[test]
fn the_users_lists_win_over_the_rules_but_not_over_the_managed_namespace() {
    let token = format!("ghp_{}", "A1".repeat(18));
    let keep = Scrub::default().keep("My_Token").keep("DSH_HOME");
    let scrubbed = scrub_with(&keep, &[("MY_TOKEN", &token), ("DSH_HOME", "x")]);
    assert_eq!(
        left(&scrubbed.environment),
        BTreeMap::from([("MY_TOKEN".into(), token.clone())])
    );
    // A name that is kept by the built-in list is still judged by its value.
    assert_eq!(reason("KEYMAP", &token), Some(DropReason::Token));
    let lists = Scrub::default().also_drop("lang");
    assert_eq!(lists.name_is_dropped(b"LANG"), Some(DropReason::Unwanted));
    assert_eq!(
        lists
            .keep("LANG")
            .also_drop("X")
            .keep("x")
            .name_is_dropped(b"LANG"),
        None
    );
}

#[test]
fn gits_count_goes_with_what_it_counts() {
    let header = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.extraheader"),
        ("GIT_CONFIG_VALUE_0", "AUTHORIZATION: basic eDp5"),
    ];
    let scrubbed = scrub(&header);
    assert_eq!(
        scrubbed.environment.names().collect::<Vec<_>>(),
        [&"GIT_CONFIG_KEY_0".into()]
    );
    let reasons: Vec<_> = scrubbed.dropped.iter().map(|dropped| dropped.reason).collect();
    assert_eq!(reasons, [DropReason::Incomplete, DropReason::Authorization]);
    // Without the keep-list the key is dropped by name, and git would stop at the count just the same.
    let minimal = scrub_with(&Scrub::minimal(), &header);
    assert!(!minimal.environment.contains("GIT_CONFIG_COUNT"));
}

#[test]
fn of_several_entries_the_first_is_taken_and_one_credential_drops_the_name() {
    let twice = scrub(&[("A", "1"), ("A", "2"), ("B", "x"), ("B", "password=y")]);
    assert_eq!(
        left(&twice.environment),
        BTreeMap::from([("A".into(), "1".into())])
    );
    assert_eq!(twice.dropped.len(), 1);
}

#[test]
fn no_value_is_printed() {
    let scrubbed = scrub(&[
        ("A", "visible-nowhere"),
        ("B_KEY", "visible-nowhere"),
        ("C", "http://visible-nowhere@h"),
    ]);
    let text = format!(
        "{scrubbed:?} {:?} {:?}",
        scrubbed.environment.iter(),
        scrubbed.environment.clone().into_iter()
    );
    assert!(
        text.contains("B_KEY") && text.contains("\"A\"") && !text.contains("visible-nowhere"),
        "{text}"
    );
}

#[test]
fn unchanged_values_are_shared_and_not_copied() {
    let value = bytes::Bytes::from("a long enough value".to_owned());
    let scrubbed = Scrub::default().apply([("A".into(), value.clone().into())]);
    assert_eq!(
        scrubbed.environment.get("A").unwrap().as_bytes().as_ptr(),
        value.as_ptr()
    );
}

/// Each of these would take minutes if a beginning were searched to the end of the value each time.
#[test]
fn huge_values_are_read_in_linear_time() {
    for (unit, expected) in [
        ("eyJ-", None),
        ("eyJaaaaaaaa-", None),
        ("http://", None),
        ("http://a:1,", None),
        ("\"http://a\"", None),
        ("http://h?a&", None),
        ("=    ", None),
        ("@", None),
        ("a: ", None),
        ("-----BEGIN CERTIFICATE-----", None),
        ("http://a@b:", None),
        ("x password=* ", None),
        ("\u{ff}", None),
    ] {
        let value = unit.repeat(512 * 1024 / unit.len());
        assert_eq!(reason("X", &value), expected, "{unit}");
    }
}

/// Text out of the pieces that the rules look for, so that the cases between them are met.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "://",
            "http://",
            "//",
            "@",
            ":",
            "/",
            "?",
            "#",
            "&",
            ";",
            "=",
            "token=",
            "password",
            "-----BEGIN",
            " ",
            "\"",
            "'",
            "eyJ",
            ".",
            "-",
            "ghp_",
            "Bearer ",
            "Basic ",
            "Authorization:",
            "h",
            "80",
            "null",
            "*",
            "LS0tLS1CRUdJTi",
            "[",
            "]",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::sample::select(vec![
            "http_proxy",
            "NO_PROXY",
            "X_DSN",
            "A",
            "B",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0"
        ])
        .prop_map(|name| name.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..8),
    ]
}

fn environment() -> impl Strategy<Value = Vec<(WorldString, WorldString)>> {
    proptest::collection::vec(
        (name(), text()).prop_map(|(name, value)| (name.into(), value.into())),
        0..12,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scrubbing_twice_is_scrubbing_once(pairs in environment()) {
        let once = Scrub::default().apply(pairs);
        let twice = Scrub::default().apply(once.environment.clone());
        prop_assert_eq!(&twice.environment, &once.environment);
        prop_assert!(twice.dropped.is_empty() && twice.cleaned.is_empty(), "{:?}", twice);
    }

    #[test]
    fn every_variable_is_left_or_listed(pairs in environment()) {
        let scrubbed = Scrub::default().apply(pairs.clone());
        for (name, value) in &pairs {
            let listed = scrubbed.dropped.iter().any(|dropped| dropped.name == *name);
            match scrubbed.environment.get(name.clone()) {
                None => prop_assert!(listed),
                Some(left) => {
                    prop_assert!(!listed);
                    let is_whole = pairs.iter().any(|(other, value)| other == name && value == left);
                    prop_assert!(is_whole || scrubbed.cleaned.contains(name));
                    prop_assert!(left.as_bytes().len() <= value.as_bytes().len() || pairs.len() > 1);
                }
            }
        }
    }

    /// The password has any characters but `/`, which no program accepts unencoded, and the quote that the URL is in. A
    /// part of it is of letters that nothing else here has. It is encoded or not.
    #[test]
    fn a_password_of_a_url_never_comes_out(
        scheme in "(http|https|postgres|redis|ftp|x\\+y)",
        user in "[a-z]{0,5}",
        password in "[!-.0-~ ]{0,6}[Q-Z]{6}[!-.0-~ ]{0,6}",
        host in "[a-p]{1,5}(:[0-9]{1,4})?",
        rest in "(/[a-p@]{0,5})?(\\?[a-p]=[a-p]{1,3})?",
        before in "(x |\"|a=|http://h,)?",
        after in "( y|\"|,http://h/|@)?",
        encode in any::<bool>(),
        name in "(X|http_proxy|ALL_PROXY|X_URL|Y_DSN)",
    ) {
        let bytes = password.as_bytes();
        let secret = bytes.windows(6).find(|part| part.iter().all(|byte| (b'Q'..=b'Z').contains(byte))).unwrap();
        let secret = String::from_utf8(secret.to_vec()).unwrap();
        let password = if before == "\"" { password.replace('"', "'") } else { password };
        let written: String = if encode {
            password.bytes().map(|byte| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            }).collect()
        } else {
            password
        };
        let value = format!("{before}{scheme}://{user}:{written}@{host}{rest}{after}");
        let scrubbed = Scrub::default().apply([(name.as_str().into(), value.as_str().into())]);
        for (_, left) in &scrubbed.environment {
            prop_assert!(!left.to_string().contains(&secret), "{} gave {}", value, left);
        }
    }

    #[test]
    fn a_merge_leaves_each_explicit_entry_and_no_removed_one(
        pairs in environment(),
        overlay in proptest::collection::btree_map(name(), proptest::option::of(text()), 0..6),
    ) {
        let overlay: EnvOverlay =
            overlay.into_iter().map(|(name, value)| (name.into(), value.map(WorldString::from))).collect();
        let ambient: Environment = pairs.into_iter().collect();
        let posix = merge(ambient.clone(), &overlay, NameCase::Exact);
        for (name, value) in &overlay {
            prop_assert_eq!(posix.get(name.clone()), value.as_ref());
        }
        let windows = merge(ambient, &overlay, NameCase::Insensitive);
        for (name, value) in &overlay {
            let found = windows.iter().filter(|(other, _)| NameCase::Insensitive.same(other, name)).count();
            prop_assert!(value.is_none() || found == 1);
        }
    }
}
