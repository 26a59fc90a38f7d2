import KizunaSync
import Supabase

/// The excerpts that define `syncScheduler` once more, each in a namespace of its own.
enum Usage {
  static let syncScheduler = KizunaSyncScheduler(
    client: kizunasync,
    pollInterval: 15,
    monitorPath: true,
    refreshSession: {
      guard let session = try? await supabase.auth.session else { return false }
      try? await kizunasync.setAccessToken(session.accessToken)
      return true
    },
    onError: { failure in print("sync failed: \(failure)") },
    needsReset: { (try? await kizunasync.checkpoint().softBlocked) ?? false }
  )
}

enum WithRealtime {
  static let syncScheduler = KizunaSyncScheduler(
    client: kizunasync,
    realtime: SupabaseRealtimeWakeup(client: supabase),
    realtimeTables: ["todos"],
    refreshSession: {
      guard let session = try? await supabase.auth.session else { return false }
      try? await kizunasync.setAccessToken(session.accessToken)
      return true
    },
    needsReset: { (try? await kizunasync.checkpoint().softBlocked) ?? false }
  )
}
