//! Login, sessions and logout.

use std::{thread::sleep, time::Duration};

use jsonwebtoken::Algorithm;
use keywright_harness::{
    Options, ReceivedRequest, Reply, Server, Stub,
    mint::{Mint, other_key, sign, signing_key},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    browser::{Browser, DEVELOPER, DEVELOPER_ACTOR, SESSION, between, filled},
    server, session,
};

#[tokio::test]
async fn a_user_logs_in_returns_to_the_requested_page_and_logs_out() {
    let server = server().await;
    let mut browser = Browser::new(&server);
    let requested = "/console/generate?type=password";
    let page = browser.log_in(requested, DEVELOPER).await.expect(200);
    page.assert_contains("Generate a credential of type password");
    page.assert_contains(DEVELOPER_ACTOR);

    let mut thief = browser.clone();
    let left = browser.submit_and_follow(&page, "/console/logout", &[]);
    left.await.assert_contains("You are logged out");
    assert!(!browser.cookies.contains_key(SESSION));
    let refused = thief.refused(303, "/console").await;
    let location = refused.header("location").unwrap();
    assert!(location.starts_with("/console/login"), "{location}");
}

#[tokio::test]
async fn the_session_cookie_is_strict_and_the_login_cookie_is_removed() {
    let server = server().await;
    let mut browser = Browser::new(&server);
    let login = browser.get("/console/login").await.expect(303);
    let cookie = login.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-keywright-login="), "{cookie}");
    let attributes = "; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600";
    assert!(cookie.ends_with(attributes), "{cookie}");

    browser.log_in("/console", DEVELOPER).await.expect(200);
    assert_eq!(browser.cookies.keys().collect::<Vec<_>>(), [SESSION]);
    let mut other = Browser::new(&server);
    let callback = redirection_to_callback(&mut other).await;
    let finished = other.page(&callback).await;
    let headers = finished.headers.iter();
    let cookies = headers.filter(|(name, _)| name == "set-cookie");
    let cookies: Vec<_> = cookies.map(|(_, cookie)| cookie).collect();
    let attributes = "; Path=/; Secure; HttpOnly; SameSite=Strict";
    assert!(cookies[0].ends_with(attributes), "{cookies:?}");
    let removed = "__Host-keywright-login=;";
    assert!(cookies[1].starts_with(removed), "{cookies:?}");
}

#[tokio::test]
async fn a_login_needs_the_state_of_the_same_browser() {
    let server = server().await;
    let mut attacker = Browser::new(&server);
    let callback = redirection_to_callback(&mut attacker).await;
    // The victim has no login in progress, or another one.
    let mut victim = Browser::new(&server);
    for _ in 0..2 {
        let refused = victim.get(&callback).await.expect(400);
        refused.assert_contains("not started in this browser");
        assert!(!victim.cookies.contains_key(SESSION));
        victim.get("/console/login").await.expect(303);
    }
    // A code that was issued for another nonce and another verifier.
    let own = redirection_to_callback(&mut victim).await;
    victim.get(&callback).await.expect(400);
    let state = |url: &str| url.split("state=").nth(1).unwrap().to_owned();
    let injected = callback.replace(&state(&callback), &state(&own));
    let refused = victim.get(&injected).await.expect(403);
    refused.assert_contains("refuses the request for a token");
    assert!(!victim.cookies.contains_key(SESSION));
}

#[tokio::test]
async fn a_code_can_be_used_only_once() {
    let server = server().await;
    let mut browser = Browser::new(&server);
    let callback = redirection_to_callback(&mut browser).await;
    let mut again = browser.clone();
    browser.page(&callback).await;
    again.get(&callback).await.expect(403);
    assert!(!again.cookies.contains_key(SESSION));
}

#[tokio::test]
async fn a_login_replaces_the_session_id_of_the_browser() {
    let server = server().await;
    let mut browser = Browser::new(&server);
    let chosen = "chosen-by-an-attacker".to_owned();
    browser.cookies.insert(SESSION.to_owned(), chosen);
    browser.log_in("/console", DEVELOPER).await.expect(200);
    let first = browser.cookies[SESSION].clone();
    assert_ne!(first, "chosen-by-an-attacker");

    let callback = redirection_to_callback(&mut browser).await;
    browser.page(&callback).await;
    assert_ne!(browser.cookies[SESSION], first);
    let mut earlier = Browser::new(&server);
    earlier.cookies.insert(SESSION.to_owned(), first);
    earlier.get("/console").await.expect(303);
}

#[tokio::test]
async fn a_login_past_the_maximum_of_its_actor_ends_the_oldest_session() {
    let limits = "sessions_max = 2\nsessions_per_actor_max = 1";
    let server = Server::start_with(&Options::default().console(limits)).await;
    let mut first = Browser::logged_in(&server, DEVELOPER).await;
    let mut second = Browser::logged_in(&server, DEVELOPER).await;
    first.get("/console").await.expect(303);
    second.get("/console").await.expect(200);
}

#[tokio::test]
async fn a_login_past_the_maximum_number_of_sessions_is_503() {
    let server = Server::start_with(&Options::default().console("sessions_max = 1")).await;
    Browser::logged_in(&server, DEVELOPER).await;
    let mut second = Browser::new(&server);
    let callback = redirection_to_callback(&mut second).await;
    let refused = second.get(&callback).await.expect(503);
    refused.assert_contains("Too many users are logged in");
}

#[tokio::test]
async fn forged_callbacks_of_one_address_leave_logins_to_others() {
    let provider = Stub::start(|request, _, url| {
        if request.line.starts_with("POST") {
            return Reply::hanging();
        }
        let discovery =
            json!({"issuer": url, "authorization_endpoint": url, "token_endpoint": url});
        Reply::new(200, &discovery.to_string())
    });
    let options = Options::default()
        .identity_provider(&provider.url())
        .audit("[audit]\nsink = \"off\"\ntrusted_proxies = [\"127.0.0.1\"]\n")
        .console("");
    let server = Server::start_with(&options).await;
    let mut forged = JoinSet::new();
    for _ in 0..20 {
        let mut browser = Browser::new(&server);
        let cookie = "state.nonce.verifier.L2NvbnNvbGU".to_owned();
        let name = "__Host-keywright-login".to_owned();
        browser.cookies.insert(name, cookie);
        forged.spawn(async move { browser.get("/console/callback?state=state&code=a").await });
    }
    // Once some are refused, the others hold all permits of their address.
    for _ in 0..4 {
        forged.join_next().await.unwrap().unwrap().expect(503);
    }
    let mut browser = Browser::new(&server);
    browser.refused(503, "/console/login").await;
    let login = format!("{}/console/login", server.base_url());
    let other = server.client_from([127, 0, 0, 2]);
    server.send(other.get(&login)).await.expect(303);
    let behind_proxy = server.client_from([127, 0, 0, 1]).get(&login);
    let behind_proxy = behind_proxy.header("x-forwarded-for", "192.0.2.1");
    server.send(behind_proxy).await.expect(303);
}

#[tokio::test]
async fn an_idle_session_leads_to_the_login_and_back() {
    let limits = "idle_seconds_max = 1";
    let server = Server::start_with(&Options::default().console(limits)).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let page = browser.get("/console/set?name=%2Fa").await.expect(303);
    let login = "/console/login?then=%2Fconsole%2Fset%3Fname%3D%252Fa";
    assert_eq!(page.header("location"), Some(login));
    let requested = "/console/set?name=%2Fa";
    let page = browser.log_in(requested, DEVELOPER).await.expect(200);
    page.assert_contains("value=\"/a\"");
}

#[tokio::test]
async fn a_link_on_another_site_opens_the_page_in_the_session() {
    let server = server().await;
    let mut browser = Browser::new(&server);
    let request = browser
        .request(Method::GET, "/console?path=%2Fteam")
        .header("sec-fetch-site", "cross-site");
    let page = server.send(request).await.expect(200);
    let refresh = "<meta http-equiv=\"refresh\" content=\"0; url=/console?path=%2Fteam\">";
    page.assert_contains(refresh);
    browser.get("/console").await.expect(303);
}

const ACCESS_TOKEN_SECONDS: &str = "KEYWRIGHT_DEVELOPMENT_IDENTITY_PROVIDER__ACCESS_TOKEN_SECONDS";

#[tokio::test]
async fn expired_access_tokens_are_refreshed() {
    let options = Options::default()
        .console("")
        .environment(ACCESS_TOKEN_SECONDS, "1");
    let server = Server::start_with(&options).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    browser.page("/console").await;
}

#[tokio::test]
async fn a_refresh_token_is_kept_if_the_browser_disconnects() {
    let provider = provider(|mint, claims, number| {
        if number > 0 {
            sleep(Duration::from_millis(500));
        }
        let token = mint.token(claims);
        json!({
            "access_token": token, "id_token": token, "token_type": "bearer", "expires_in": 10,
            "refresh_token": format!("refresh-{number}"),
        })
    });
    let provider = provider.await;
    let server = server_with(&provider).await;
    let mut browser = Browser::new(&server);
    let callback = callback_with_nonce(&mut browser).await;
    browser.page(&callback).await;

    let cancelled = browser.request(Method::GET, "/console");
    let cancelled = cancelled.timeout(Duration::from_millis(100)).send().await;
    assert!(cancelled.unwrap_err().is_timeout());
    browser.page("/console").await;
    let requests = provider.requests();
    let used = |request: &ReceivedRequest| {
        let body = format!("{}&", request.body);
        between(&body, "refresh_token=refresh-", "&").map(str::to_owned)
    };
    let used: Vec<_> = requests.iter().filter_map(used).collect();
    assert_eq!(used, ["0", "1"]);
}

#[tokio::test]
async fn a_refresh_token_is_used_until_the_provider_replaces_it() {
    let provider = provider(|mint, claims, number| {
        let token = mint.token(claims);
        let mut tokens = json!({
            "access_token": token, "id_token": token, "token_type": "bearer", "expires_in": 10,
        });
        if number == 0 {
            tokens["refresh_token"] = json!("refresh");
        }
        tokens
    });
    let provider = provider.await;
    let server = server_with(&provider).await;
    let mut browser = Browser::new(&server);
    let callback = callback_with_nonce(&mut browser).await;
    browser.page(&callback).await;
    for _ in 0..2 {
        browser.page("/console").await;
    }
    let requests = provider.requests();
    let is_refresh = |request: &&ReceivedRequest| request.body.contains("refresh_token=refresh");
    assert_eq!(requests.iter().filter(is_refresh).count(), 2);
}

#[tokio::test]
async fn a_refreshed_token_of_another_user_ends_the_session() {
    let provider = provider(|mint, claims, number| {
        let mut claims = claims.clone();
        if number > 0 {
            claims["sub"] = json!("other");
            claims["user_id"] = json!("other");
        }
        let token = mint.token(&claims);
        json!({
            "access_token": token, "id_token": token, "token_type": "bearer", "expires_in": 1,
            "refresh_token": "refresh",
        })
    });
    let provider = provider.await;
    let server = server_with(&provider).await;
    let mut browser = Browser::new(&server);
    let callback = callback_with_nonce(&mut browser).await;
    browser.get(&callback).await.expect(200);
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    browser.get("/console").await.expect(303);
    let requests = provider.requests();
    let is_refresh = |request: &ReceivedRequest| request.body.contains("refresh_token=refresh");
    assert!(requests.iter().any(is_refresh));
}

#[tokio::test]
async fn a_login_with_an_unsuitable_id_token_is_refused() {
    let provider = provider(|mint, claims, number| {
        let mut changed = claims.clone();
        let (claim, value, reason) = &id_tokens()[number];
        changed[*claim] = value.clone();
        let key = match *reason {
            Some(NOT_SIGNED) => other_key(),
            _ => signing_key(),
        };
        json!({
            "access_token": mint.token(claims), "token_type": "bearer", "expires_in": 600,
            "id_token": sign(&mint.header(), &changed, Algorithm::RS256, &key),
        })
    });
    let provider = provider.await;
    let server = server_with(&provider).await;
    for (claim, _, reason) in id_tokens() {
        let mut browser = Browser::new(&server);
        let callback = callback_with_nonce(&mut browser).await;
        let finished = browser.get(&callback).await;
        match reason {
            None => drop(finished.expect(200)),
            Some(reason) => {
                let error = format!("ID token was rejected: {reason}");
                finished.expect(403).assert_contains(&error);
            }
        }
        assert_eq!(
            browser.cookies.contains_key(SESSION),
            reason.is_none(),
            "{claim}"
        );
    }
}

const NOT_SIGNED: &str = "not signed by a trusted key";

/// ID tokens with one changed claim, and the reasons to reject them.
fn id_tokens() -> [(&'static str, Value, Option<&'static str>); 8] {
    [
        ("azp", json!("console"), None),
        ("iss", json!("https://other.example"), Some("wrong issuer")),
        ("aud", json!("other"), Some("wrong audience")),
        ("aud", Value::Null, Some("wrong audience")),
        ("azp", json!("other"), Some("wrong audience")),
        ("exp", json!(1), Some("it has expired")),
        ("nonce", json!("other"), Some("wrong nonce")),
        ("azp", json!("console"), Some(NOT_SIGNED)),
    ]
}

/// Starts a provider that responds to requests for tokens with the result of this function. Its arguments are the key, valid
/// claims, and the number of previous requests. The authorization code is the nonce.
async fn provider(tokens: impl Fn(&Mint, &Value, usize) -> Value + Send + Sync + 'static) -> Stub {
    let other = Server::start().await;
    let mint = Mint::of(&other).await;
    let keys = other.request(Method::GET, "/identity/token_keys");
    let keys = other.send(keys).await.expect(200).body;
    Stub::start(move |request, number, url| {
        if request.line == "GET /keys" {
            return Reply::new(200, &keys);
        }
        if request.line.starts_with("GET") {
            let discovery = json!({
                "issuer": url, "authorization_endpoint": url, "token_endpoint": format!("{url}/token"),
                "jwks_uri": format!("{url}/keys"),
            });
            return Reply::new(200, &discovery.to_string());
        }
        let mut claims = mint.user_claims("user");
        claims["iss"] = json!(url);
        claims["aud"] = json!("console");
        claims["nonce"] = json!(between(&format!("{}&", request.body), "code=", "&"));
        Reply::new(200, &tokens(&mint, &claims, number).to_string())
    })
}

async fn server_with(provider: &Stub) -> Server {
    let options = Options::default()
        .identity_provider(&provider.url())
        .console("");
    Server::start_with(&options).await
}

/// Starts a login, and returns the address of the redirection to the console, with the nonce as the code.
async fn callback_with_nonce(browser: &mut Browser) -> String {
    let login = browser.get("/console/login").await.expect(303);
    let page = format!("{}&", login.header("location").unwrap());
    let parameter = |name| between(&page, name, "&").unwrap();
    let (state, nonce) = (parameter("state="), parameter("nonce="));
    format!("/console/callback?state={state}&code={nonce}")
}

#[tokio::test]
async fn a_session_without_a_valid_token_ends() {
    let refresh_token_seconds = ACCESS_TOKEN_SECONDS.replace("ACCESS", "REFRESH");
    let options = Options::default()
        .console("")
        .environment(ACCESS_TOKEN_SECONDS, "1")
        .environment(&refresh_token_seconds, "1");
    let server = Server::start_with(&options).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    browser.get("/console").await.expect(303);
}

#[tokio::test]
async fn the_development_provider_requires_registered_uris_and_pkce() {
    let server = server().await;
    let mut browser = Browser::new(&server);
    let login = browser.get("/console/login").await.expect(303);
    let page = login.header("location").unwrap().to_owned();
    let callback = "console%2Fcallback";
    for (accepted, refused) in [
        (callback, "console%2Fother"),
        ("https%3A%2F%2F127.0.0.1", "https%3A%2F%2Fother.example"),
        ("code_challenge_method=S256", "code_challenge_method=plain"),
        ("client_id=console", "client_id=developer"),
        ("response_type=code", "response_type=token"),
        ("code_challenge=", "other="),
    ] {
        assert!(page.contains(accepted), "{accepted} {page}");
        let refused = browser.refused(400, &page.replace(accepted, refused)).await;
        assert_eq!(refused.header("location"), None);
        refused.assert_lacks("<form");
    }
    let form = browser.page(&page).await;
    let wrong = [("username", "developer"), ("password", "wrong")];
    let wrong = filled(&form.body, &wrong);
    let refused = browser.send_form("/identity/oauth/authorize", &wrong).await;
    let refused = refused.expect(403);
    refused.assert_contains("wrong user name or password");
}

#[tokio::test]
async fn the_page_after_a_logout_links_to_the_logout_of_the_provider() {
    for (logout, expected) in [
        ("https://provider.example/logout?a=b", true),
        ("javascript:alert(1)", false),
        ("http://provider.example/logout", false),
    ] {
        let provider = Stub::start(move |_, _, url| {
            let discovery = json!({
                "issuer": url, "authorization_endpoint": url, "token_endpoint": url, "end_session_endpoint": logout,
            });
            Reply::new(200, &discovery.to_string())
        });
        let options = Options::default()
            .identity_provider(&provider.url())
            .console("");
        let server = Server::start_with(&options).await;
        let mut browser = Browser::new(&server);
        browser.get("/console/login").await.expect(303);
        let page = browser.page("/console/logged-out").await;
        let link = format!("href=\"{logout}&amp;client_id=console\"");
        assert_eq!(page.body.contains(&link), expected, "{page:?}");
        assert_eq!(page.body.contains(logout), expected, "{page:?}");
    }
}

#[tokio::test]
async fn without_configuration_the_console_is_not_served() {
    let server = Server::start().await;
    for path in ["/console", "/console/login", "/console/style.css"] {
        let response = server.get(path).await.expect(404);
        assert_eq!(response.error(), "unknown path");
    }
}

#[tokio::test]
async fn an_unknown_page_is_404_in_a_session_and_the_login_without() {
    let (server, mut browser) = session().await;
    for path in ["/console/absent", "/console/credential/absent/deeper"] {
        let page = browser.get(path).await.expect(404);
        let message = "The console has no page at this address.";
        page.assert_contains(message);
        let posted = browser.send_form(path, &[]).await.expect(404);
        assert_eq!(posted.body, page.body);
        let login = Browser::new(&server).get(path).await.expect(303);
        let location = login.header("location").unwrap();
        assert!(location.starts_with("/console/login?then="), "{location}");
    }
    server.get("/consoles").await.expect(404).error();
}

/// Logs in at the provider, and returns the address of the redirection to the console.
async fn redirection_to_callback(browser: &mut Browser) -> String {
    let form = browser.open("/console/login").await.expect(200);
    let given = [("username", DEVELOPER.0), ("password", DEVELOPER.1)];
    let fields = filled(&form.body, &given);
    let redirection = browser
        .send_form("/identity/oauth/authorize", &fields)
        .await;
    redirection
        .expect(303)
        .header("location")
        .unwrap()
        .to_owned()
}
