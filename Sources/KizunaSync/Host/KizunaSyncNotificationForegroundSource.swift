import Foundation

/// Kept so that code written for platforms with a screen compiles. Linux posts no did-become-active notification, so this
/// source never reports anything; ``KizunaSyncResumeSource`` is the default here.
public final class KizunaSyncNotificationForegroundSource: KizunaSyncForegroundSource {
  public init(center: NotificationCenter = .default) {}

  public func start(onForeground: @escaping @Sendable () -> Void) {}

  public func stop() {}
}
