import HostKit

/// What the gateway in front of the hosted services answers by itself: requests without a key, or with a wrong one.
package struct APIKeyGate: Sendable {
  private let tokens: StackTokens
  private let requiresKey: Bool

  package init(tokens: StackTokens, requiresKey: Bool) {
    self.tokens = tokens
    self.requiresKey = requiresKey
  }

  /// Nil when the request may pass.
  ///
  /// - Parameter now: seconds since 1970.
  package func refusal(of request: StackRequest, now: Int64) -> StackResponse? {
    guard requiresKey else { return nil }
    guard let key = request.header("apikey") ?? request.parameter("apikey") else {
      return .json(
        [
          "message": "No API key found in request",
          "hint": "No `apikey` request header or url param was found.",
        ], status: 401)
    }
    if tokens.accepts(apiKey: key, now: now) { return nil }
    return .json(
      [
        "message": "Invalid API key", "hint": "Use the publishableKey that kizuna-localstack printed when it started.",
      ], status: 401)
  }
}
