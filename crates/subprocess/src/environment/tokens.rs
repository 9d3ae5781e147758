//! Tokens that their issuers made recognisable.

use super::DropReason;
use Follows::{Anything, Capitals, EncodedBlock, Jwt, Letters, Words};

/// Tells whether a token may begin with this byte.
pub(super) const fn may_begin(byte: u8) -> bool {
    STARTS[byte as usize] != 0
}

/// Tells whether a token begins at this place, which is not within a word.
pub(super) fn begins(value: &[u8], at: usize) -> Option<DropReason> {
    let bytes = &value[at..];
    let [first, second, ..] = *bytes else { return None };
    if STARTS[usize::from(first)] & (1 << (second & 31)) == 0 {
        return None;
    }
    let after_dash = at > 0 && value[at - 1] == b'-';
    PREFIXES
        .iter()
        .filter(|prefix| prefix.text.as_bytes()[0] == first)
        .find(|prefix| prefix.matches(bytes, after_dash))
        .map(Prefix::reason)
}

/// How a kind of token begins, and how much must follow.
struct Prefix {
    text: &'static str,
    follows: Follows,
}

#[derive(Clone, Copy)]
enum Follows {
    /// At least so many letters and digits.
    Letters(usize),
    /// At least so many letters, digits, `_`, `-`, `.`.
    Words(usize),
    /// Exactly so many capital letters and digits, and then no further one.
    Capitals(usize),
    /// The rest of a JSON web token: base64url, a dot, base64url, a dot.
    Jwt,
    /// The rest of a PEM block in base64, unless its label begins like that of a certificate or public key.
    EncodedBlock,
    /// Nothing.
    Anything,
}

impl Prefix {
    fn matches(&self, bytes: &[u8], after_dash: bool) -> bool {
        let Some(rest) = bytes.strip_prefix(self.text.as_bytes()) else {
            return false;
        };
        match self.follows {
            Letters(least) => run(rest, least, |byte| byte.is_ascii_alphanumeric()) == least,
            Words(least) => run(rest, least, is_word) == least,
            Capitals(exact) => {
                run(rest, exact + 1, |byte| {
                    byte.is_ascii_uppercase() || byte.is_ascii_digit()
                }) == exact
            }
            // A dash is of the token's own alphabet: what follows one is no beginning, and so no byte is read
            // more than a few times however many beginnings there are.
            Jwt => !after_dash && is_jwt(rest),
            EncodedBlock => !rest.starts_with(b"BDRVJU") && !rest.starts_with(b"BQVUJM"),
            Anything => true,
        }
    }

    fn reason(&self) -> DropReason {
        match self.follows {
            EncodedBlock | Anything => DropReason::PrivateKey,
            _ => DropReason::Token,
        }
    }
}

/// Counts the bytes of a kind at the beginning, up to a limit.
fn run(bytes: &[u8], limit: usize, kind: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take(limit).take_while(|&&byte| kind(byte)).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Two parts and the dot before the third, which is empty in a token without signature.
fn is_jwt(rest: &[u8]) -> bool {
    const SHORTEST_PART: usize = 8;
    let part = |bytes: &[u8]| {
        run(bytes, usize::MAX, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
        })
    };
    let header = part(rest);
    if header < SHORTEST_PART || rest.get(header) != Some(&b'.') {
        return false;
    }
    let rest = &rest[header + 1..];
    let claims = part(rest);
    claims >= SHORTEST_PART && rest.get(claims) == Some(&b'.')
}

/// For each first byte, the set of second bytes (by their low five bits) with which a prefix goes on.
const STARTS: [u32; 256] = {
    let mut starts = [0; 256];
    let mut index = 0;
    while index < PREFIXES.len() {
        let text = PREFIXES[index].text.as_bytes();
        starts[text[0] as usize] |= 1 << (text[1] & 31);
        index += 1;
    }
    starts
};

const fn prefix(text: &'static str, follows: Follows) -> Prefix {
    Prefix { text, follows }
}

/// Least lengths are below what the issuers use today, and far above what a word is.
const PREFIXES: &[Prefix] = &[
    // Source forges and package registries.
    prefix("ghp_", Letters(30)),
    prefix("gho_", Letters(30)),
    prefix("ghu_", Letters(30)),
    prefix("ghs_", Letters(30)),
    prefix("ghr_", Letters(30)),
    prefix("github_pat_", Words(22)),
    prefix("glpat-", Words(16)),
    prefix("glptt-", Words(16)),
    prefix("gldt-", Words(16)),
    prefix("glrt-", Words(16)),
    prefix("glcbt-", Words(16)),
    prefix("glsoat-", Words(16)),
    prefix("ATBB", Letters(24)),
    prefix("ATATT3", Words(24)),
    prefix("ATCTT3", Words(24)),
    prefix("npm_", Letters(30)),
    prefix("pypi-", Words(32)),
    prefix("rubygems_", Letters(32)),
    prefix("dckr_pat_", Words(16)),
    prefix("dckr_oat_", Words(16)),
    // Model providers.
    prefix("sk-ant-", Words(16)),
    prefix("sk-proj-", Words(16)),
    prefix("sk-svcacct-", Words(16)),
    prefix("sk-admin-", Words(16)),
    prefix("sk-or-v1-", Words(16)),
    prefix("sk-", Letters(32)),
    prefix("hf_", Letters(30)),
    prefix("gsk_", Letters(32)),
    prefix("xai-", Letters(32)),
    prefix("pplx-", Letters(32)),
    prefix("nvapi-", Words(32)),
    prefix("r8_", Letters(32)),
    prefix("lsv2_pt_", Words(24)),
    prefix("lsv2_sk_", Words(24)),
    prefix("tvly-", Words(24)),
    // Clouds.
    prefix("AKIA", Capitals(16)),
    prefix("ASIA", Capitals(16)),
    prefix("AIza", Words(30)),
    prefix("ya29.", Words(20)),
    prefix("GOCSPX-", Words(20)),
    prefix("dop_v1_", Letters(32)),
    prefix("doo_v1_", Letters(32)),
    prefix("hvs.", Words(20)),
    prefix("hvb.", Words(20)),
    prefix("dapi", Letters(32)),
    prefix("sbp_", Letters(32)),
    prefix("tskey-", Words(16)),
    prefix("pul-", Letters(32)),
    prefix("HRKU-", Words(24)),
    // Payment, mail, chat, monitoring.
    prefix("sk_live_", Letters(16)),
    prefix("sk_test_", Letters(16)),
    prefix("rk_live_", Letters(16)),
    prefix("rk_test_", Letters(16)),
    prefix("sk_", Letters(32)),
    prefix("whsec_", Letters(16)),
    prefix("shpat_", Letters(24)),
    prefix("shpss_", Letters(24)),
    prefix("SG.", Words(40)),
    prefix("xoxb-", Words(16)),
    prefix("xoxp-", Words(16)),
    prefix("xoxa-", Words(16)),
    prefix("xoxr-", Words(16)),
    prefix("xoxs-", Words(16)),
    prefix("xoxe", Words(24)),
    prefix("xapp-", Words(16)),
    prefix("lin_api_", Letters(24)),
    prefix("figd_", Words(24)),
    prefix("ntn_", Letters(32)),
    prefix("PMAK-", Words(24)),
    prefix("sntrys_", Words(24)),
    prefix("sntryu_", Letters(32)),
    prefix("glsa_", Words(24)),
    prefix("NRAK-", Letters(20)),
    // Any issuer.
    prefix("eyJ", Jwt),
    // Private keys that are not a PEM block as it stands.
    prefix("AGE-SECRET-KEY-1", Anything),
    prefix("PuTTY-User-Key-File-", Anything),
    prefix("LS0tLS1CRUdJTi", EncodedBlock),
];

#[cfg(test)]
mod tests {
    use super::super::shapes::credential;
    use super::*;

    /// Something of the right alphabet after each prefix, so that no whole token stands in this file.
    fn example(prefix: &Prefix) -> String {
        let rest = match prefix.follows {
            Letters(least) | Words(least) | Capitals(least) => {
                "A1".repeat(least).chars().take(least).collect()
            }
            Jwt => "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.".to_owned(),
            EncodedBlock => "BQUklWQVRF".to_owned(),
            Anything => String::new(),
        };
        format!("{}{rest}", prefix.text)
    }

    #[test]
    fn every_prefix_is_found_alone_and_within_text() {
        for prefix in PREFIXES {
            let token = example(prefix);
            for value in [token.clone(), format!("a \"{token}\" b"), format!("é{token}")] {
                assert!(credential(value.as_bytes()).is_some(), "{value}");
            }
            assert_eq!(
                credential(format!("x{token}").as_bytes()),
                None,
                "within a word: x{token}"
            );
        }
    }

    #[test]
    fn what_only_begins_like_a_token_passes() {
        for value in [
            "npm_config_user_agent",
            "sk-learn-extra",
            "pypi-server",
            "hf_home",
            "AKIA",
            "ASIAPACIFIC",
            "eyJhbGciOiJIUzI1NiJ9",
            "eyJhbGciOiJIUzI1NiJ9.x",
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
            "ghp_short",
            "github_pattern",
        ] {
            assert_eq!(credential(value.as_bytes()), None, "{value}");
        }
    }
}
