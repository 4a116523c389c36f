//! A browser without scripts: it stores cookies, follows redirections and submits forms.

use std::collections::BTreeMap;

use keywright_harness::{Response, Server};
use reqwest::{
    Client, Method, RequestBuilder, Url,
    header::{CONTENT_TYPE, COOKIE, ORIGIN},
};

/// The user with all permissions.
pub(crate) const DEVELOPER: (&str, &str) = ("developer", "developer-password");
/// The user without permissions.
pub(crate) const GUEST: (&str, &str) = ("guest", "guest-password");

pub(crate) const DEVELOPER_ACTOR: &str = "uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10";
pub(crate) const GUEST_ACTOR: &str = "uaa-user:7c1d0e52-9d0a-4a51-8a55-0b9be2f3c1de";

/// The name of the session's cookie.
pub(crate) const SESSION: &str = "__Host-keywright-session";

/// The address of the form that reveals a secret field.
pub(crate) const REVEAL: &str = "/console/credential/reveal";

/// A browser with its cookies.
#[derive(Clone)]
pub(crate) struct Browser {
    client: Client,
    base_url: String,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    pub(crate) fn new(server: &Server) -> Self {
        Self {
            client: server.plain_client(),
            base_url: server.base_url().to_owned(),
            cookies: BTreeMap::new(),
        }
    }

    /// Logs a user in, and opens the first page.
    pub(crate) async fn logged_in(server: &Server, user: (&str, &str)) -> Self {
        let mut browser = Self::new(server);
        let page = browser.log_in("/console", user).await;
        page.assert_contains("Log out");
        browser
    }

    /// Opens a page, logs a user in on the provider's page, and returns the page that follows.
    pub(crate) async fn log_in(&mut self, path: &str, (name, password): (&str, &str)) -> Response {
        let form = self.open(path).await.expect(200);
        form.assert_contains("Development login");
        let fields = filled(&form.body, &[("username", name), ("password", password)]);
        let redirection = self.send_form("/identity/oauth/authorize", &fields).await;
        let redirection = redirection.expect(303);
        let callback = redirection.header("location").unwrap().to_owned();
        let interstitial = self.get(&callback).await.expect(200);
        let then = between(&interstitial.body, "content=\"0; url=", "\"").unwrap();
        self.open(&unescaped(then)).await
    }

    /// Opens a page, and follows redirections.
    pub(crate) async fn open(&mut self, path: &str) -> Response {
        let mut path = path.to_owned();
        for _ in 0..10 {
            let response = self.get(&path).await;
            match response.header("location") {
                Some(location) => location.clone_into(&mut path),
                None => return response,
            }
        }
        panic!("too many redirections to {path}");
    }

    /// Sends a GET request.
    pub(crate) async fn get(&mut self, path: &str) -> Response {
        let request = self.request(Method::GET, path);
        self.sent(request).await
    }

    /// Opens a page, whose status must be 200.
    pub(crate) async fn page(&mut self, path: &str) -> Response {
        self.get(path).await.expect(200)
    }

    /// Opens a page, which must be refused with this status.
    pub(crate) async fn refused(&mut self, status: u16, path: &str) -> Response {
        self.get(path).await.expect(status)
    }

    /// Reveals the first secret field on the page of a credential.
    pub(crate) async fn reveal(&mut self, page: &Response) -> Response {
        self.submit(page, REVEAL, &[]).await.expect(200)
    }

    /// Fills in the form of a page that submits to this address, and submits it.
    pub(crate) async fn submit(
        &mut self,
        page: &Response,
        action: &str,
        given: &[(&str, &str)],
    ) -> Response {
        let all = filled(form(&page.body, action), given);
        self.send_form(action, &all).await
    }

    /// Opens a page, fills in its form that submits to this address, and submits it.
    pub(crate) async fn fill_in(
        &mut self,
        path: &str,
        action: &str,
        given: &[(&str, &str)],
    ) -> Response {
        let page = self.page(path).await;
        self.submit(&page, action, given).await
    }

    /// Like [`Self::fill_in`], and shows the page that follows.
    pub(crate) async fn fill_in_and_follow(
        &mut self,
        path: &str,
        action: &str,
        given: &[(&str, &str)],
    ) -> Response {
        let page = self.page(path).await;
        self.submit_and_follow(&page, action, given).await
    }

    /// Submits a form, and shows the page that follows, whose status must be 200.
    pub(crate) async fn submit_and_follow(
        &mut self,
        page: &Response,
        action: &str,
        given: &[(&str, &str)],
    ) -> Response {
        let redirection = self.submit(page, action, given).await.expect(303);
        let location = redirection.header("location").unwrap().to_owned();
        self.open(&location).await.expect(200)
    }

    /// Sends a form from a page of the same origin.
    pub(crate) async fn send_form(&mut self, path: &str, fields: &[(String, String)]) -> Response {
        let request = self.form_request(path, fields);
        let request = request
            .header(ORIGIN, "null")
            .header("sec-fetch-site", "same-origin");
        self.sent(request).await
    }

    /// Returns a request with a form and the cookies, for the test to complete.
    pub(crate) fn form_request(&self, path: &str, fields: &[(String, String)]) -> RequestBuilder {
        let mut encoded = Url::parse(&self.base_url).unwrap();
        encoded.query_pairs_mut().extend_pairs(fields);
        self.request(Method::POST, path)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(encoded.query().unwrap_or_default().to_owned())
    }

    /// Returns a request with the cookies.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = Url::parse(&self.base_url).unwrap().join(path).unwrap();
        let is_on_server = url.as_str().starts_with(&self.base_url);
        assert!(is_on_server, "the browser leaves the server: {url}");
        let cookies = self.cookies.iter();
        let cookies = cookies.map(|(name, value)| format!("{name}={value}"));
        let cookies: Vec<_> = cookies.collect();
        let request = self.client.request(method, url);
        if cookies.is_empty() {
            request
        } else {
            request.header(COOKIE, cookies.join("; "))
        }
    }

    async fn sent(&mut self, request: RequestBuilder) -> Response {
        let response = Response::to(request).await;
        for (name, cookie) in &response.headers {
            if name != "set-cookie" {
                continue;
            }
            let (pair, attributes) = cookie.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }
}

/// Returns the first form of a page that submits to this address.
pub(crate) fn form<'a>(page: &'a str, action: &str) -> &'a str {
    let start = page.find(&format!("action=\"{action}\""));
    let form = &page[start.unwrap_or_else(|| panic!("no form for {action} in {page}"))..];
    &form[..form.find("</form>").unwrap()]
}

/// Returns the fields of a form: inputs with a value, and the selected or first options.
pub(crate) fn fields(form: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for element in form.split("<input ").skip(1) {
        let element = &element[..element.find('>').unwrap()];
        let is_checkbox = element.contains("type=\"checkbox\"");
        if is_checkbox && !element.contains(" checked") {
            continue;
        }
        if let Some(name) = between(element, "name=\"", "\"") {
            let value = between(element, "value=\"", "\"").unwrap_or_default();
            fields.push((unescaped(name), unescaped(value)));
        }
    }
    for element in form.split("<select ").skip(1) {
        let name = between(element, "name=\"", "\"").unwrap();
        let options = &element[..element.find("</select>").unwrap()];
        let mut options = options.split("<option ").skip(1);
        let first = options.next().unwrap();
        let selected =
            options.find(|option| option[..option.find('>').unwrap()].contains(" selected"));
        let value = between(selected.unwrap_or(first), "value=\"", "\"").unwrap();
        fields.push((unescaped(name), unescaped(value)));
    }
    fields
}

/// Returns the fields of a form, with some of them filled in.
pub(crate) fn filled(form: &str, given: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all = fields(form);
    for (name, value) in given {
        all.retain(|(known, _)| known != name);
        all.push(((*name).to_owned(), (*value).to_owned()));
    }
    all
}

/// Returns the text between two others.
pub(crate) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find(after)?])
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
