import KizunaSync
import SupabaseRealtime

/// A wakeup of one's own may hand out the connection's subscriptions as they are.
extension RealtimeSubscription: KizunaSyncRealtimeSubscription {}
