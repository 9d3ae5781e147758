//! Credentials in URLs: taken out where that is certain, and otherwise the variable goes.
//!
//! The text is read as programs read it rather than as it should be written: a password may hold raw `@`, `:`, `?` and
//! `#`. Where two readings are possible and one has a password, the variable is dropped. One reading is trusted: after
//! `host:80/`, an `@` belongs to the path, because no program takes it for the end of a password.
//!
//! A URL in quotes ends with the closing one, so that a document may hold it. A URL that is
//! percent-encoded within another is not seen.

use std::ops::Range;

use memchr::{memchr, memmem, memrchr};

use super::names;

/// What became of a value.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Cleaned {
    /// It has no credentials in a URL.
    Unchanged,
    /// It had, and this is left.
    Changed(Vec<u8>),
    /// It has, or may have, some that cannot be taken out.
    Hopeless,
}

/// Takes the credentials out of the URLs of a variable, whose name is given in upper case.
pub(super) fn clean(name: &[u8], value: &[u8]) -> Cleaned {
    let has_url = value.starts_with(b"//") || after_scheme(value, 0).is_some();
    if !has_url && memchr(b'@', value).is_none() {
        return Cleaned::Unchanged;
    }
    let cuts = if names::proxy(name) {
        proxy_userinfo(value).into_iter().collect()
    } else if has_url {
        match credentials(value, names::data_source(name)) {
            Some(cuts) => cuts,
            None => return Cleaned::Hopeless,
        }
    } else if is_address_with_password(value) {
        return Cleaned::Hopeless;
    } else {
        return Cleaned::Unchanged;
    };
    let left = without(value, &cuts);
    // What is left is read once more: cutting may have joined two parts to a new URL, and a proxy may have parameters.
    // So a scrubbed value is always one that the scrub leaves alone.
    if credentials(&left, false).is_none_or(|cuts| !cuts.is_empty())
        || names::proxy(name) && memchr(b'@', &left).is_some()
    {
        Cleaned::Hopeless
    } else if cuts.is_empty() {
        Cleaned::Unchanged
    } else {
        Cleaned::Changed(left)
    }
}

/// Finds the user of a proxy. A proxy is a host and nothing follows it, so all before the last `@` is the user, whatever
/// characters it has; the scheme may be missing.
fn proxy_userinfo(value: &[u8]) -> Option<Range<usize>> {
    let at = memrchr(b'@', value)?;
    let start = after_scheme(&value[..at], 0).unwrap_or(0);
    Some(start..at + 1)
}

/// Finds the ranges to cut out of a text with URLs, in order. `None`: it is not certain what they are.
fn credentials(value: &[u8], needs_user: bool) -> Option<Vec<Range<usize>>> {
    let last_at = memrchr(b'@', value);
    let mut cuts = Vec::new();
    let mut floor = 0;
    let mut next = if value.starts_with(b"//") {
        Some(2)
    } else {
        after_scheme(value, 0)
    };
    while let Some(start) = next {
        next = after_scheme(value, start);
        // What belongs to this URL ends where the next one begins (in a list or a query), so that no byte is read for
        // more than one. The colon of the next scheme is left in: without it, it would not be seen to be one.
        let text = &value[..next.map_or(value.len(), |next| next - "//".len())];
        url(text, floor, start, last_at, needs_user, &mut cuts)?;
        // A password with a scheme in it: where it ends is anybody's guess.
        if next.is_some() && cuts.last().is_some_and(|cut| cut.end == text.len()) {
            return None;
        }
        floor = start;
    }
    Some(cuts)
}

/// Where the authority of the first URL after a place begins.
fn after_scheme(value: &[u8], from: usize) -> Option<usize> {
    memmem::find(&value[from..], b"://").map(|colon| from + colon + "://".len())
}

/// Reads one URL whose authority begins at `start` and whose scheme begins at `floor` or later.
fn url(
    text: &[u8],
    floor: usize,
    start: usize,
    last_at: Option<usize>,
    needs_user: bool,
    cuts: &mut Vec<Range<usize>>,
) -> Option<()> {
    let scheme = scheme_before(text, floor, start);
    // A URL in quotes ends with them. Other punctuation may be part of a password.
    let quote = scheme
        .start
        .checked_sub(1)
        .map(|at| text[at])
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let ends = |byte: u8| byte <= b' ' || Some(byte) == quote;
    let authority_end = position(text, start, |byte| {
        ends(byte) || matches!(byte, b'/' | b'?' | b'#')
    });
    let authority = &text[start..authority_end];

    if let Some(at) = memrchr(b'@', authority) {
        let user = &authority[..at];
        let has_password = user.contains(&b':');
        if has_password || is_web(&text[scheme]) {
            let may_go_on = has_password && another_at(text, authority_end, quote);
            if needs_user || user.contains(&b';') || may_go_on {
                return None;
            }
            cuts.push(start..start + at + 1);
        }
    } else if last_at.is_some_and(|at| at >= authority_end)
        && may_be_cut_short(text, start..authority_end, quote)
    {
        return None;
    }
    if is_webhook(authority, &text[authority_end..]) {
        return None;
    }
    let query = position(text, authority_end, |byte| {
        ends(byte) || matches!(byte, b'?' | b'#')
    });
    if text.get(query).is_some_and(|byte| matches!(byte, b'?' | b'#')) {
        parameters(text, query..position(text, query, ends), cuts);
    }
    Some(())
}

/// The scheme, with compounds such as `jdbc:postgresql` left at their last part.
fn scheme_before(value: &[u8], floor: usize, start: usize) -> Range<usize> {
    let end = start.saturating_sub(3).max(floor);
    let length = value[floor..end]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        .count();
    end - length..end
}

/// Tells whether a lone user is taken for a token: it is one with forges, registries and error trackers.
fn is_web(scheme: &[u8]) -> bool {
    let last = scheme.rsplit(|&byte| byte == b'+').next().unwrap_or_default();
    [&b"http"[..], b"https", b"ws", b"wss"]
        .iter()
        .any(|web| last.eq_ignore_ascii_case(web))
}

/// Tells whether another `@` follows before the next URL, so that the password may have gone on behind the first one.
fn another_at(text: &[u8], from: usize, quote: Option<u8>) -> bool {
    (from..text.len())
        .take_while(|&at| !closes(text, at, quote))
        .any(|at| text[at] == b'@')
}

/// Tells whether this is the quote that closes a URL, by what comes after it.
fn closes(value: &[u8], at: usize, quote: Option<u8>) -> bool {
    value.get(at).is_some_and(|&byte| Some(byte) == quote)
        && value
            .get(at + 1)
            .is_none_or(|&next| next <= b' ' || matches!(next, b',' | b';' | b'}' | b']' | b')'))
}

/// Tells whether what looks like `host:port` without user may be the beginning of `user:password@host`, the password
/// having one of the characters that end an authority. An `@` is known to come later.
fn may_be_cut_short(value: &[u8], authority: Range<usize>, quote: Option<u8>) -> bool {
    let end = authority.end;
    let authority = &value[authority];
    // The colons of `[::1]` are no port's.
    let bracket = if authority.starts_with(b"[") {
        authority.iter().position(|&byte| byte == b']')
    } else {
        None
    };
    let after_host = &authority[bracket.unwrap_or(0)..];
    let Some(colon) = after_host.iter().rposition(|&byte| byte == b':') else {
        return false;
    };
    if !after_host[colon + 1..].iter().all(u8::is_ascii_digit) {
        return true;
    }
    if closes(value, end, quote) {
        return false;
    }
    // A port, and then what? After a slash a path with an `@` in it; after anything else nothing that has one.
    let next_slash = position(value, end, |byte| byte == b'/');
    value[end..next_slash].contains(&b'@')
}

/// Tells whether a URL is a webhook: whoever knows the path may post.
fn is_webhook(host: &[u8], path: &[u8]) -> bool {
    const WEBHOOKS: &[(&[u8], &[u8])] = &[
        (b"hooks.slack.com", b"/"),
        (b"discord.com", b"/api/webhooks/"),
        (b"discordapp.com", b"/api/webhooks/"),
        (b"webhook.office.com", b"/webhook"),
    ];
    WEBHOOKS.iter().any(|(domain, prefix)| {
        host.len() >= domain.len()
            && host[host.len() - domain.len()..].eq_ignore_ascii_case(domain)
            && path.strip_prefix(*prefix).is_some_and(|rest| !rest.is_empty())
    })
}

/// Finds the parameters of a query or fragment that are credentials. `range` begins with its `?` or `#`.
fn parameters(text: &[u8], range: Range<usize>, cuts: &mut Vec<Range<usize>>) {
    let text = &text[..range.end];
    let mut start = range.start + 1;
    while start < text.len() {
        let end = position(text, start, |byte| matches!(byte, b'&' | b';' | b'#' | b'?'));
        let parameter = &text[start..end];
        let name = memchr(b'=', parameter).unwrap_or(parameter.len());
        if name + 1 < parameter.len() && is_credential_parameter(&parameter[..name]) {
            // A value may have any of the separators but `&` in it. That one goes too, or for the last parameter what
            // stands before it.
            let end = position(text, end, |byte| byte == b'&');
            cuts.push(if end < text.len() {
                start..end + 1
            } else {
                start - 1..end
            });
            start = end + 1;
        } else {
            start = end + 1;
        }
    }
}

fn is_credential_parameter(name: &[u8]) -> bool {
    const PARTS: names::Parts = names::Parts::new(&["PASSWORD", "SECRET", "TOKEN", "SIGNATURE"]);
    let name = name.to_ascii_uppercase();
    match &name[..] {
        // A path, in the connection strings of PostgreSQL.
        b"SSLKEY" => false,
        b"SIG" | b"PASS" | b"PWD" | b"PW" | b"JWT" => true,
        _ => PARTS.are_in(&name) || name.ends_with(b"KEY") || names::credential(&name),
    }
}

/// Tells whether a value without scheme is `user:password@host:port`, or the same with a host in brackets as Go's
/// driver for `MySQL` takes it. Without a port it may as well be an image with its digest or a package with its version.
fn is_address_with_password(value: &[u8]) -> bool {
    const NOT_USERS: &[&[u8]] = &[b"sip", b"sips", b"mailto", b"xmpp", b"acct"];
    let (Some(colon), Some(at)) = (
        value.iter().position(|&byte| byte == b':'),
        value.iter().rposition(|&byte| byte == b'@'),
    ) else {
        return false;
    };
    if colon == 0 || at < colon + 2 || NOT_USERS.contains(&&value[..colon]) {
        return false;
    }
    let is_user =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b'%');
    if !value[..colon].iter().all(is_user) || value.iter().any(|&byte| byte <= b' ') {
        return false;
    }
    let host = &value[at + 1..];
    if host.starts_with(b"tcp(") || host.starts_with(b"unix(") {
        return true;
    }
    let Some(port) = host.iter().position(|&byte| byte == b':') else {
        return false;
    };
    let digits = host[port + 1..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let name = &host[..port];
    !name.is_empty()
        && name.iter().all(is_user)
        && !name.starts_with(b"sha")
        && (1..=5).contains(&digits)
        && matches!(host.get(port + 1 + digits), None | Some(b'/' | b'?' | b','))
}

/// Copies a value without some ranges, which are in order and may overlap.
fn without(value: &[u8], cuts: &[Range<usize>]) -> Vec<u8> {
    let mut left = Vec::with_capacity(value.len());
    let mut from = 0;
    for cut in cuts {
        left.extend_from_slice(value.get(from..cut.start).unwrap_or_default());
        from = from.max(cut.end);
    }
    left.extend_from_slice(&value[from..]);
    left
}

/// The first place at or after `from` whose byte satisfies a condition, or the end.
fn position(value: &[u8], from: usize, condition: impl Fn(u8) -> bool) -> usize {
    value[from..]
        .iter()
        .position(|&byte| condition(byte))
        .map_or(value.len(), |offset| from + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(name: &str, value: &str) -> Option<String> {
        match clean(name.to_ascii_uppercase().as_bytes(), value.as_bytes()) {
            Cleaned::Unchanged => Some(value.to_owned()),
            Cleaned::Changed(left) => {
                assert_ne!(left, value.as_bytes(), "changed to itself");
                Some(String::from_utf8(left).expect("cut at ASCII characters"))
            }
            Cleaned::Hopeless => None,
        }
    }

    #[test]
    fn a_url_loses_user_and_password() {
        for (value, left) in [
            ("postgres://ada:pw@db:5432/x", "postgres://db:5432/x"),
            ("redis://:pw@cache", "redis://cache"),
            ("https://u:p@ss:w@host/x?y=1#z", "https://host/x?y=1#z"),
            ("amqps://u:%40%2F@[::1]:5671/v", "amqps://[::1]:5671/v"),
            ("mongodb+srv://u:p@a,b/db", "mongodb+srv://a,b/db"),
            ("a=https://u:p@h b=ftp://u2:p2@h2/", "a=https://h b=ftp://h2/"),
            (
                "http://u:p@h1,http://h2,http://v:q@h3",
                "http://h1,http://h2,http://h3",
            ),
            (
                "{\"a\":\"http://u:p@h\",\"b\":\"x@y\"}",
                "{\"a\":\"http://h\",\"b\":\"x@y\"}",
            ),
            (
                "[\"http://h:80\",\"http://u:p@h\"]",
                "[\"http://h:80\",\"http://h\"]",
            ),
            ("http://h,https://abc@i,http://j", "http://h,https://i,http://j"),
            ("http://a:b@http://c:d@h", "http://http://h"),
            ("//u:p@h/x", "//h/x"),
            ("://u:p@h", "://h"),
            ("https://h/?next=https://u:p@i/", "https://h/?next=https://i/"),
            ("HTTPS://u:@h", "HTTPS://h"),
        ] {
            assert_eq!(cleaned("X", value).as_deref(), Some(left), "{value}");
        }
    }

    #[test]
    fn a_lone_user_is_a_token_on_the_web_and_a_name_elsewhere() {
        assert_eq!(
            cleaned("X", "https://abc123@forge/x.git").unwrap(),
            "https://forge/x.git"
        );
        assert_eq!(
            cleaned("X", "git+https://abc123@forge/x.git").unwrap(),
            "git+https://forge/x.git"
        );
        for value in [
            "ssh://git@host/x.git",
            "git+ssh://git@host/x",
            "postgres://ada@db/x",
            "ssh://ada@h:22",
        ] {
            assert_eq!(cleaned("X", value).unwrap(), value);
        }
    }

    #[test]
    fn parameters_that_are_credentials_are_cut_out() {
        for (value, left) in [
            ("https://h/p?token=a", "https://h/p"),
            ("https://h/p?token=a&x=1", "https://h/p?x=1"),
            ("https://h/p?x=1&api_key=a&y=2", "https://h/p?x=1&y=2"),
            ("https://h/p?x=1&Password=a#f", "https://h/p?x=1"),
            ("postgres://h/d?password=a#b;c?d&x=1", "postgres://h/d?x=1"),
            ("https://h/p#access_token=a&x=1", "https://h/p#x=1"),
            ("https://h?sig=a&token=b", "https://h?"),
            (
                "jdbc:postgresql://h/d?user=u&password=p",
                "jdbc:postgresql://h/d?user=u",
            ),
            (
                "postgres://h/d?sslkey=/etc/k&application_name=x",
                "postgres://h/d?sslkey=/etc/k&application_name=x",
            ),
            ("https://h/p?page=2&q=token", "https://h/p?page=2&q=token"),
            ("https://h/p?token=", "https://h/p?token="),
        ] {
            assert_eq!(cleaned("X", value).as_deref(), Some(left), "{value}");
        }
    }

    #[test]
    fn what_is_not_certain_is_dropped() {
        for value in [
            "http://u:p/w@h",
            "http://u:p w@h",
            "http://u:1 w@h",
            "http://u:1@w w@h",
            "http://h/?password=a://b@i",
            "http://u:1#2@h/x",
            "\"http://u:p\"w@h\"",
            "\"http://u:1\"w@h\"",
            "postgres://u:1?2@h/x",
            "http://u:p@s/s@h/x",
            "jdbc:sqlserver://h:1;user=u;password=p@ss",
            "ada:pw@tcp(db:3306)/x",
            "guest:guest@rabbit:5672",
            "https://hooks.slack.com/services/T0/B0/abc",
            "https://discord.com/api/webhooks/1/abc",
        ] {
            assert_eq!(cleaned("X", value), None, "{value}");
        }
        assert_eq!(
            cleaned("SENTRY_DSN", "https://abc@tracker/1"),
            None,
            "useless without its user"
        );
    }

    #[test]
    fn addresses_without_credentials_pass() {
        for value in [
            "{\"url\":\"http://h:80\",\"mail\":\"x@y\"}",
            "https://registry:4873/@scope/pkg",
            "https://h/user@example.com",
            "https://h:8080/?mail=x",
            "http://[fe80::1]:80/a@b",
            "http://localhost:$PORT/",
            "http://host:/",
            "git@host:ada/x.git",
            "ada@example.com",
            "nginx:1.25@sha256:0123456789abcdef",
            "npm:left-pad@1.3.0",
            "mailto:ada@example.com:25",
            "unix:///run/docker.sock",
            "https://proxy.golang.org,direct",
            "file:///home/ada/a@b",
        ] {
            assert_eq!(cleaned("X", value).as_deref(), Some(value), "{value}");
        }
    }

    #[test]
    fn item_186_a_proxy_keeps_its_spelling_and_loses_its_user() {
        for (value, left) in [
            ("http://ada:pw@proxy:3128", "http://proxy:3128"),
            ("http://ada:p/w?#@d@proxy:3128/", "http://proxy:3128/"),
            ("socks5h://ada@proxy", "socks5h://proxy"),
            ("ada:pw@proxy:3128", "proxy:3128"),
            ("ada@proxy", "proxy"),
            ("proxy:3128", "proxy:3128"),
            ("localhost,.corp,10.0.0.0/8", "localhost,.corp,10.0.0.0/8"),
        ] {
            for name in [
                "http_proxy",
                "HTTPS_PROXY",
                "ALL_PROXY",
                "No_Proxy",
                "npm_config_proxy",
            ] {
                assert_eq!(cleaned(name, value).as_deref(), Some(left), "{name}={value}");
            }
        }
    }
}
