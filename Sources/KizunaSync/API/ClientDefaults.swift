import HTTPClient

/// What `KizunaSyncClient()` takes when it is given nothing, so that the package can run an app's own code, in which
/// clients are globals, against a server of its tests.
package enum ClientDefaults {
  @TaskLocal package static var http: (any HTTPTransport)?
}
