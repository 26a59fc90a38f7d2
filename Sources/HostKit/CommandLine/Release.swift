/// Which release of the package this is.
public enum Release {
  /// What `--version` prints; raised with each release.
  public static let version = "0.1.0"
}
