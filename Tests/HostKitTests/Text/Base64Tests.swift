import HostKit
import Testing

@Suite struct Base64Tests {
  @Test(arguments: [
    ("", "", ""), ("f", "Zg==", "Zg"), ("fo", "Zm8=", "Zm8"), ("foo", "Zm9v", "Zm9v"), ("foob", "Zm9vYg==", "Zm9vYg"),
    ("~~~???", "fn5+Pz8/", "fn5-Pz8_"),
  ])
  func bothAlphabets(text: String, standard: String, url: String) {
    let bytes = Array(text.utf8)
    #expect(Base64.encode(bytes) == standard)
    #expect(Base64.encode(bytes, .url) == url)
    #expect(Base64.decode(standard) == bytes)
    #expect(Base64.decode(url, .url) == bytes)
  }

  @Test(arguments: ["Z", "Zg=", "Zh", "Z g", "Zm9v\n", "Z===", "Zm9-", "é"])
  func refuses(text: String) {
    #expect(Base64.decode(text) == nil)
  }
}
