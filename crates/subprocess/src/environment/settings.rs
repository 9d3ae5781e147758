//! `password=…` and its relatives: connection strings, options, headers, JSON.

use super::DropReason;

/// How far spaces are skipped on either side of the sign.
const SPACES: usize = 8;

/// What a key ends in, in lower case, when its value is a credential.
const ENDINGS: &[&[u8]] = &[
    b"password",
    b"passwd",
    b"passphrase",
    b"secret",
    b"token",
    b"apikey",
    b"api_key",
    b"api-key",
    b"accesskey",
    b"access_key",
    b"access-key",
    b"accountkey",
    b"account_key",
    b"private_key",
    b"secretkey",
    b"secret_key",
];

/// Short keys that count only as a whole: `Pwd=` of a connection string, `sig=` of a signed one.
const WHOLE: &[&[u8]] = &[b"pwd", b"pass", b"sig"];

/// Tells whether the `=` or `:` at this place gives a value to a key that names a credential.
///
/// A colon does so after a quoted key (JSON) and in a header; elsewhere it is punctuation.
pub(super) fn assigned(value: &[u8], at: usize) -> Option<DropReason> {
    let mut end = at;
    let floor = at.saturating_sub(SPACES);
    while end > floor && value[end - 1] == b' ' {
        end -= 1;
    }
    let quoted = end > 0 && matches!(value[end - 1], b'"' | b'\'');
    let key = &value[..end - usize::from(quoted)];
    // Nearly every sign is dismissed here, by one byte.
    if !matches!(
        key.last().map(u8::to_ascii_lowercase),
        Some(b'd' | b'e' | b't' | b'n' | b'y' | b's' | b'g')
    ) {
        return None;
    }
    let is_colon = value[at] == b':';
    let reason = if ends_with(key, b"authorization") || ends_with(key, b"cookie") {
        DropReason::Authorization
    } else if let Some(ending) = ENDINGS.iter().find(|ending| ends_with(key, ending)) {
        let is_header = ending.contains(&b'-') || key[..key.len() - ending.len()].ends_with(b"-");
        if is_colon && !quoted && !is_header {
            return None;
        }
        DropReason::Setting
    } else if WHOLE
        .iter()
        .any(|whole| ends_with(key, whole) && begins_key(&key[..key.len() - whole.len()]))
        && (!is_colon || quoted)
    {
        DropReason::Setting
    } else {
        return None;
    };
    holds_something(&value[at + 1..]).then_some(reason)
}

fn ends_with(key: &[u8], ending: &[u8]) -> bool {
    key.len() >= ending.len() && key[key.len() - ending.len()..].eq_ignore_ascii_case(ending)
}

fn begins_key(before: &[u8]) -> bool {
    before.last().is_none_or(|byte| {
        matches!(byte, b';' | b'&' | b'?' | b',' | b'"' | b'\'') || byte.is_ascii_whitespace()
    })
}

/// Tells whether a value begins here. Nothing, a mask of asterisks and `null` are none.
fn holds_something(rest: &[u8]) -> bool {
    let spaces = rest.iter().take(SPACES).take_while(|&&byte| byte == b' ').count();
    let rest = &rest[spaces..];
    let rest = match rest {
        [b'"' | b'\'', inner @ ..] => inner,
        _ => rest,
    };
    let ends = |byte: u8| {
        matches!(byte, b';' | b'&' | b',' | b'"' | b'\'' | b':' | b'}' | b'|') || byte.is_ascii_whitespace()
    };
    let Some(&first) = rest.first() else { return false };
    if ends(first) || first == b'=' || rest.starts_with(b"//") || rest.starts_with(b"null") {
        return false;
    }
    let masked = rest.iter().take_while(|&&byte| byte == b'*').count();
    masked == 0 || rest.get(masked).is_some_and(|&byte| !ends(byte))
}

#[cfg(test)]
mod tests {
    use super::super::shapes::credential;
    use super::*;

    #[test]
    fn settings_with_a_credential_are_found() {
        for value in [
            "host=db user=ada password=pw",
            "host=db password = 'p w'",
            "Server=db;User Id=sa;Password=pw;",
            "Server=db;Uid=sa;Pwd=pw",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=bm8=;EndpointSuffix=x",
            "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=bm8=",
            "-Dhttp.proxyPassword=pw -Xmx1g",
            "jdbc:sqlserver://db:1433;user=sa;password=p@ss;",
            "{\"user\": \"ada\", \"password\": \"pw\"}",
            "--token=abc",
            "x-api-key: abc",
            "api-key=abc,other=1",
            "sv=2024&sig=abc",
        ] {
            assert_eq!(credential(value.as_bytes()), Some(DropReason::Setting), "{value}");
        }
        for value in [
            "Authorization: token abc",
            "'http.extraheader=AUTHORIZATION: basic abc'",
            "Cookie: a=b",
        ] {
            assert_eq!(
                credential(value.as_bytes()),
                Some(DropReason::Authorization),
                "{value}"
            );
        }
    }

    #[test]
    fn settings_without_one_pass() {
        for value in [
            "host=db user=ada passfile=/home/ada/.pgpass sslkey=/etc/k",
            "password=",
            "password=;user=a",
            "password=***",
            "ls:*password=*:*token=*",
            "--max-tokens=100 --key=2",
            "{\"password\": null, \"token\": \"\"}",
            "*.tar=01;31:*.key=01:pwd",
            "note: the secret: it is late",
            "() { local password=$1 token=abc; }",
            "cwd=/srv pwdx=1 osig=1",
        ] {
            assert_eq!(credential(value.as_bytes()), None, "{value}");
        }
    }
}
