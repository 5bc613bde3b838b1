//! Requests on connections: one that is kept alive carries a whole round; a service that closes
//! after each answer is asked on several at a time.

use std::net::SocketAddr;
use std::time::Instant;

use super::endpoint::Endpoint;
use super::http::Answer;
use super::lane::{Lane, Trouble};
use super::{Imds, Session};

/// Connections at a time, where the service closes each after one answer.
const LANES: usize = 4;

impl Imds {
    /// The text of a GET.
    pub(super) fn get(&self, path: &str) -> String {
        let endpoint = self.endpoint();
        let (prefix, host) = (&endpoint.prefix, endpoint.host());
        let token = match &self.session {
            Session::Token(token) => format!("X-aws-ec2-metadata-token: {}\r\n", token.expose()),
            Session::Closed | Session::Version1 => String::new(),
        };
        format!(
            "GET {prefix}/latest/{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: tenon\r\n{token}\r\n"
        )
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoints[self.chosen.unwrap_or(0)]
    }

    /// Sends requests and gives an answer or a trouble for each; the result is shorter when the
    /// service closed the connection in between, and the rest is to be asked again.
    pub(super) fn exchange(&mut self, requests: &[String]) -> Vec<Result<Answer, Trouble>> {
        let deadline = self.pace.attempt();
        if self.keep_alive {
            self.pipelined(requests, deadline)
        } else {
            self.parallel(requests, deadline)
        }
    }

    /// All requests in one write on one connection, answers in their order.
    fn pipelined(
        &mut self,
        requests: &[String],
        deadline: Instant,
    ) -> Vec<Result<Answer, Trouble>> {
        let text = requests.concat();
        let reused = self.idle.is_some();
        let (lane, first) = match self.begin(&text, requests.len(), deadline) {
            // The service may have closed an idle connection at any time; that is no failure.
            Err(Trouble::Passing(_)) if reused => match self.begin(&text, requests.len(), deadline)
            {
                Ok(pair) => pair,
                Err(trouble) => return vec![Err(trouble)],
            },
            Err(trouble) => return vec![Err(trouble)],
            Ok(pair) => pair,
        };
        self.keep_alive = first.keep_alive;
        let (mut lane, mut answers) = (lane, vec![Ok(first)]);
        while self.keep_alive && answers.len() < requests.len() {
            let answer = lane.receive(deadline);
            // A service that answers the first of several requests and not the rest does not know
            // how to take them together; from now on each has a connection of its own.
            self.keep_alive = answer.as_ref().is_ok_and(|answer| answer.keep_alive);
            answers.push(answer);
        }
        self.idle = self.keep_alive.then_some(lane);
        answers
    }

    /// Sends on the idle connection or a new one, and waits for the first answer.
    fn begin(
        &mut self,
        text: &str,
        count: usize,
        deadline: Instant,
    ) -> Result<(Lane, Answer), Trouble> {
        let mut lane = match self.idle.take() {
            Some(lane) => lane,
            None => self.open(deadline)?,
        };
        self.requests += u32::try_from(count).unwrap_or(u32::MAX);
        lane.send(text.as_bytes(), deadline)?;
        let answer = lane.receive(deadline)?;
        Ok((lane, answer))
    }

    /// One connection for each of the first few requests; all are sent before any is awaited.
    fn parallel(&mut self, requests: &[String], deadline: Instant) -> Vec<Result<Answer, Trouble>> {
        let mut lanes = Vec::new();
        for request in requests.iter().take(LANES) {
            let opened = self.open(deadline).and_then(|mut lane| {
                lane.send(request.as_bytes(), deadline)?;
                Ok(lane)
            });
            self.requests += 1;
            lanes.push(opened);
        }
        lanes.into_iter().map(|lane| lane.and_then(|mut lane| lane.receive(deadline))).collect()
    }

    fn open(&mut self, deadline: Instant) -> Result<Lane, Trouble> {
        let addresses: Vec<SocketAddr> = match self.chosen {
            Some(index) => vec![self.endpoints[index].address],
            None => self.endpoints.iter().map(|endpoint| endpoint.address).collect(),
        };
        let (index, lane) = Lane::open(&addresses, deadline)?;
        self.chosen.get_or_insert(index);
        Ok(lane)
    }
}
