import CCurl
import HostKit
import Testing

@testable import HTTPClient

@Suite struct CurlFailureTests {
  private static let cases: [(CurlFailure, String?, HTTPError)] = [
    (
      CurlFailure(code: CURLE_COULDNT_RESOLVE_PROXY), "proxy:3128",
      HTTPError(.proxy, "the name of the proxy proxy:3128 cannot be resolved")
    ),
    (
      CurlFailure(code: CURLE_COULDNT_CONNECT, resolved: true, systemError: 111), "proxy:3128",
      HTTPError(.proxy, "the proxy proxy:3128 cannot be reached: connection refused")
    ),
    (
      CurlFailure(code: CURLE_COULDNT_CONNECT, resolved: true, systemError: 101), nil,
      HTTPError(.unreachable, "host:443 cannot be reached: no route to the network")
    ),
    (
      CurlFailure(code: CURLE_RECV_ERROR, resolved: true, proxyStatus: 407), "proxy:3128",
      HTTPError(.proxy, "the proxy proxy:3128 refused the connection to host:443 with status 407")
    ),
    (
      CurlFailure(code: CURLE_RECV_ERROR, resolved: true, connected: true, proxyStatus: 200), "proxy:3128",
      HTTPError(.connectionLost, "host:443 closed the connection before its answer was complete")
    ),
    (
      CurlFailure(code: CURLE_WEIRD_SERVER_REPLY, resolved: true), "proxy:3128",
      HTTPError(
        .proxy,
        "the proxy proxy:3128 did not answer as an HTTP proxy does; see that its address and port are right")
    ),
    (
      CurlFailure(code: CURLE_WEIRD_SERVER_REPLY, resolved: true, connected: true, proxyStatus: 200), "proxy:3128",
      HTTPError(.other, "what host:443 answered is not valid HTTP")
    ),
    (
      CurlFailure(code: CURLE_PROXY, proxyCode: 5), "proxy:1080",
      HTTPError(.proxy, "the proxy proxy:1080 refused to connect to host:443 (code 5)")
    ),
    (
      CurlFailure(code: CURLE_OPERATION_TIMEDOUT, timeout: .seconds(30), connectTimeout: .seconds(10)), nil,
      HTTPError(.timeout, "the name of host:443 could not be resolved within 10 s")
    ),
    (
      CurlFailure(code: CURLE_OPERATION_TIMEDOUT, timeout: .seconds(30), connectTimeout: .seconds(10), resolved: true),
      nil,
      HTTPError(.timeout, "no connection to host:443 within 10 s")
    ),
    (
      CurlFailure(
        code: CURLE_OPERATION_TIMEDOUT, timeout: .milliseconds(1500), connectTimeout: .seconds(10), resolved: true,
        connected: true), nil, HTTPError(.timeout, "host:443 did not answer completely within 1500 ms")
    ),
    (
      CurlFailure(
        code: CURLE_OPERATION_TIMEDOUT, timeout: .milliseconds(1500), connectTimeout: .seconds(10), resolved: true,
        connected: true, hasMoved: true), nil,
      HTTPError(.timeout, "host:443 did not answer completely within 1500 ms", isTooSlow: true)
    ),
    (
      CurlFailure(code: CURLE_SSL_CACERT_BADFILE, resolved: true), nil,
      HTTPError(
        .tls,
        "the certificate authorities cannot be read, so host:443 cannot be verified; install ca-certificates or correct authorityFile"
      )
    ),
    (
      CurlFailure(code: CURLE_PEER_FAILED_VERIFICATION, resolved: true, verification: 10), nil,
      HTTPError(.tls, "the certificate of host:443 has expired")
    ),
    (
      CurlFailure(code: CURLE_PEER_FAILED_VERIFICATION, resolved: true, verification: 9), nil,
      HTTPError(.tls, "the certificate of host:443 is not valid yet; check this machine's clock")
    ),
    (
      CurlFailure(code: CURLE_PEER_FAILED_VERIFICATION, resolved: true, verification: 18), nil,
      HTTPError(.tls, "the certificate of host:443 is self-signed; to trust it, name it as authorityFile")
    ),
    (
      CurlFailure(code: CURLE_PEER_FAILED_VERIFICATION, resolved: true, verification: 1), nil,
      HTTPError(.tls, "the certificate of host:443 is for another name")
    ),
    (
      CurlFailure(code: CURLE_SSL_CONNECT_ERROR, resolved: true, verification: 1), nil,
      HTTPError(
        .tls,
        "no TLS connection to host:443 could be agreed; check that the port is the one for https, as a port for http does not answer so"
      )
    ),
    (
      CurlFailure(code: CURLE_URL_MALFORMAT, detail: "https://host/secret"), nil,
      HTTPError(.invalidURL, "the request address for host:443 is malformed")
    ),
    (
      CurlFailure(code: CURLE_OUT_OF_MEMORY), nil, HTTPError(.other, "the request to host:443 failed (libcurl code 27)")
    ),
    (
      CurlFailure(code: CURLE_HTTP2_STREAM, connected: true), nil,
      HTTPError(.connectionLost, "host:443 closed the connection before its answer was complete")
    ),
  ]

  @Test(arguments: cases.indices) func sentences(index: Int) {
    let (failure, proxy, error) = Self.cases[index]
    #expect(failure.error(host: "host:443", proxy: proxy) == error)
  }

  /// Whatever libcurl reports, its own words are not passed on.
  @Test(arguments: 1...99) func noCodeLeaksLibcurlsWords(code: Int) {
    for isEarly in [true, false] {
      let failure = CurlFailure(
        code: CURLcode(UInt32(code)), resolved: !isEarly, connected: !isEarly,
        detail: "https://host/secret?apikey=secret")
      #expect(!failure.error(host: "host:443", proxy: "proxy:1").message.contains("secret"))
    }
  }
}
