//! Bootstrap tokens of a running cluster: made, listed, deleted.

use tenon_core::bootstrap_token::secret::{self, Listed, NAMESPACE, Wish};
use tenon_core::bootstrap_token::{ID_LENGTH, SECRET_LENGTH, Token};
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use super::{ApiError, Client};
use crate::random;

/// How often an id that is taken already is drawn again; there are two thousand million of them.
const DRAWS: u32 = 5;

fn collection() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets")
}

/// Draws a token from the system's random source.
pub fn draw() -> Result<Token, Problem> {
    Ok(Token {
        id: random::letters(ID_LENGTH)?,
        secret: Secret::new(random::letters(SECRET_LENGTH)?),
    })
}

/// Makes a new token in the cluster. A request without an answer is not repeated: it may have
/// made a token that nobody knows of.
pub fn create(client: &Client, wish: &Wish) -> Result<Token, Problem> {
    let mut draws = 0;
    loop {
        let token = draw()?;
        draws += 1;
        match client.create(&collection(), &secret::write(&token, wish)) {
            Ok(_) => return Ok(token),
            Err(error) if error.is_conflict() && draws < DRAWS => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The tokens of the cluster, by their id.
pub fn list(client: &Client) -> Result<Vec<Listed>, ApiError> {
    let path = format!("{}?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken", collection());
    let mut found: Vec<_> = client.list(&path)?.iter().filter_map(Listed::read).collect();
    found.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(found)
}

/// Deletes a token by its id; false if there was none.
pub fn delete(client: &Client, id: &str) -> Result<bool, ApiError> {
    client.delete(&format!("{}/{}", collection(), secret::name(id)))
}
