import HostKit

/// An error of the auth service, in the shapes GoTrue gives it.
struct AuthError: Error, Hashable {
  let status: Int
  let code: String
  let message: String

  init(_ status: Int, _ code: String, _ message: String) {
    self.status = status
    self.code = code
    self.message = message
  }

  /// - Parameter request: its API version header chooses between the older and the newer shape.
  func response(to request: StackRequest) -> StackResponse {
    let isNew = (request.header("x-supabase-api-version") ?? "") >= "2024-01-01"
    let body: JSONValue =
      isNew
      ? ["code": .string(code), "message": .string(message)]
      : ["code": .int(status), "error_code": .string(code), "msg": .string(message)]
    return .json(body, status: status, headers: [StackHeader("x-sb-error-code", code)])
  }
}
