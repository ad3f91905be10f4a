//! Requests over HTTP.

use std::io::Read;
use std::time::Duration;

use url::Url;

/// The result of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// An HTML page, or the text of robots.txt.
    Page(Vec<u8>),
    /// A redirect to this link.
    Redirect(String),
    /// A page without links: another type of content, or not found.
    Nothing,
    /// The server could not be reached or had an error; a later attempt may succeed.
    Failed(String),
}

/// A source of pages: HTTP, in tests a function.
pub(crate) trait Fetch: Sync {
    fn fetch(&self, url: &Url) -> Response;
}

/// An HTTP client.
#[derive(Debug)]
pub(crate) struct Http {
    agent: ureq::Agent,
    max_bytes: u64,
}

impl Http {
    /// Makes a client that reads at most `max_bytes` of a page.
    pub(crate) fn new(
        user_agent: &str,
        proxy: Option<&str>,
        timeout: Duration,
        max_bytes: u64,
    ) -> Result<Self, String> {
        let proxy =
            proxy.map(|proxy| ureq::Proxy::new(proxy).map_err(|e| format!("--proxy {proxy}: {e}")));
        let config = ureq::Agent::config_builder()
            .user_agent(user_agent)
            .accept("text/html, application/xhtml+xml")
            .proxy(proxy.transpose()?)
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            // A redirect is a link: its target may have been visited, or be forbidden.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(100)
            .build();
        Ok(Self { agent: config.new_agent(), max_bytes })
    }

    fn try_fetch(&self, url: &Url) -> Result<Response, Box<dyn std::error::Error>> {
        let mut response = self.agent.get(url.as_str()).call()?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        response.body_mut().as_reader().take(self.max_bytes).read_to_end(&mut body)?;
        let is_text = response.body().mime_type().is_none_or(|mime| {
            matches!(mime, "text/html" | "application/xhtml+xml") || url.path() == "/robots.txt"
        });
        Ok(match status {
            200..300 if is_text => Response::Page(body),
            300..400 => match response.headers().get("location") {
                Some(link) => {
                    Response::Redirect(String::from_utf8_lossy(link.as_bytes()).into_owned())
                }
                None => Response::Nothing,
            },
            429 | 500.. => Response::Failed(format!("status {status}")),
            _ => Response::Nothing,
        })
    }
}

impl Fetch for Http {
    fn fetch(&self, url: &Url) -> Response {
        self.try_fetch(url).unwrap_or_else(|e| Response::Failed(e.to_string()))
    }
}
