/// Parameters from which a stored value can be made anew; the fields are those of
/// `keywright:generator/recoverer.recovered`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The canonical parameters, a JSON object.
    pub parameters: String,
    /// Whether the stored value determined them all.
    pub is_complete: bool,
}
