import CLibwebsockets

/// The few things of OpenSSL the development server needs.
package enum Digest {
  /// - Parameter bits: 256, 384 or 512.
  static func hmac(_ message: some Collection<UInt8>, key: [UInt8], bits: Int = 256) -> [UInt8] {
    let algorithm = bits == 512 ? EVP_sha512() : bits == 384 ? EVP_sha384() : EVP_sha256()
    var out = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    let message = Array(message)
    let result = HMAC(algorithm, key, Int32(key.count), message, message.count, &out, &count)
    precondition(result != nil, "HMAC with a built-in digest fails only without memory")
    return Array(out.prefix(Int(count)))
  }

  static func sha256(_ message: [UInt8]) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    let result = EVP_Digest(message, message.count, &out, &count, EVP_sha256(), nil)
    precondition(result == 1, "a built-in digest fails only without memory")
    return Array(out.prefix(Int(count)))
  }

  /// PBKDF2 with HMAC-SHA-256.
  static func stretched(_ password: String, salt: [UInt8], rounds: Int32) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: 32)
    let bytes = Array(password.utf8).map(CChar.init(bitPattern:))
    let result = PKCS5_PBKDF2_HMAC(
      bytes, Int32(bytes.count), salt, Int32(salt.count), rounds, EVP_sha256(), Int32(out.count), &out)
    precondition(result == 1, "PBKDF2 with a built-in digest fails only without memory")
    return out
  }

  /// Equality whose time does not tell how much of the two agrees.
  static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }

  package static func random(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    var bytes: [UInt8] = []
    // Each number is a system call.
    while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) } }
    return Array(bytes[..<count])
  }
}
