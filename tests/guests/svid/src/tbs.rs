//! The body of an X.509-SVID: a leaf without a subject, identified by its URI.

/// The parts of a body. The byte slices are DER: whole elements or the content of an element.
pub(crate) struct Body<'a> {
    pub(crate) serial: &'a [u8],
    pub(crate) signature_algorithm: &'a [u8],
    pub(crate) issuer: &'a [u8],
    pub(crate) authority_key_identifier: Option<&'a [u8]>,
    pub(crate) public_key: &'a [u8],
    pub(crate) spiffe_id: &'a str,
    pub(crate) not_before: u64,
    pub(crate) duration_days: u64,
}

/// Encodes the `TBSCertificate` (RFC 5280) as DER.
pub(crate) fn tbs_certificate(body: &Body<'_>) -> Vec<u8> {
    let not_after = body.not_before + body.duration_days * SECONDS_A_DAY;
    let validity = [utc_time(body.not_before), utc_time(not_after)].concat();
    // Makes the number positive, with the same number of octets.
    let mut serial = body.serial.to_vec();
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x3f | 0x40;
    }
    let parts = [
        element(0xa0, &element(INTEGER, &[2])),
        element(INTEGER, &serial),
        body.signature_algorithm.to_vec(),
        body.issuer.to_vec(),
        element(SEQUENCE, &validity),
        element(SEQUENCE, &[]),
        body.public_key.to_vec(),
        element(0xa3, &element(SEQUENCE, &extensions(body))),
    ];
    element(SEQUENCE, &parts.concat())
}

fn extensions(body: &Body<'_>) -> Vec<u8> {
    let uri = element(SEQUENCE, &element(0x86, body.spiffe_id.as_bytes()));
    // Any octets derived from the key are valid (RFC 5280, section 4.2.1.2).
    let (_, identifier) = body.public_key.split_at(body.public_key.len() - 20);
    let purposes = [
        element(OBJECT_IDENTIFIER, &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
        element(OBJECT_IDENTIFIER, &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ];
    let mut extensions = [
        extension(SUBJECT_KEY_IDENTIFIER, false, &element(0x04, identifier)),
        extension(BASIC_CONSTRAINTS, true, &element(SEQUENCE, &[])),
        // digitalSignature
        extension(KEY_USAGE, true, &element(0x03, &[7, 0x80])),
        extension(
            EXTENDED_KEY_USAGE,
            false,
            &element(SEQUENCE, &purposes.concat()),
        ),
        // Critical, because there is no subject.
        extension(SUBJECT_ALTERNATIVE_NAME, true, &uri),
    ]
    .concat();
    if let Some(identifier) = body.authority_key_identifier {
        let identifier = element(SEQUENCE, &element(0x80, identifier));
        extensions.extend(extension(AUTHORITY_KEY_IDENTIFIER, false, &identifier));
    }
    extensions
}

fn extension(last_arc: u8, is_critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = element(OBJECT_IDENTIFIER, &[0x55, 0x1d, last_arc]);
    if is_critical {
        parts.extend([0x01, 0x01, 0xff]);
    }
    parts.extend(element(0x04, value));
    element(SEQUENCE, &parts)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut element = vec![tag];
    if content.len() < 0x80 {
        element.push(significant.first().copied().unwrap_or_default());
    } else {
        element.push(0x80 | u8::try_from(significant.len()).unwrap_or(u8::MAX));
        element.extend(significant);
    }
    element.extend(content);
    element
}

/// Supports years up to 2049.
fn utc_time(seconds: u64) -> Vec<u8> {
    let (year, month, day) = date(seconds / SECONDS_A_DAY);
    let of_day = seconds % SECONDS_A_DAY;
    let text = format!(
        "{:02}{month:02}{day:02}{:02}{:02}{:02}Z",
        year % 100,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    );
    element(0x17, text.as_bytes())
}

/// Converts days since 1970 to a Gregorian date.
fn date(mut day: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OBJECT_IDENTIFIER: u8 = 0x06;

const SUBJECT_KEY_IDENTIFIER: u8 = 14;
const SUBJECT_ALTERNATIVE_NAME: u8 = 17;
const BASIC_CONSTRAINTS: u8 = 19;
const KEY_USAGE: u8 = 15;
const AUTHORITY_KEY_IDENTIFIER: u8 = 35;
const EXTENDED_KEY_USAGE: u8 = 37;

const SECONDS_A_DAY: u64 = 24 * 60 * 60;
