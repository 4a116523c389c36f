//! Malformed and overreaching certificates: what the issuer must refuse to sign and the server must refuse to store.
