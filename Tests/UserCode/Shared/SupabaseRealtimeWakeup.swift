import KizunaSync
import Supabase

final class SupabaseRealtimeWakeup: KizunaSyncRealtimeWakeup {
  private let client: SupabaseClient

  init(client: SupabaseClient) {
    self.client = client
  }

  func subscribe(
    topics: [String],
    onWake: @escaping @Sendable () -> Void
  ) -> KizunaSyncRealtimeSubscription {
    let channels = topics.map { topic -> RealtimeChannelV2 in
      let channel = client.realtimeV2.channel(topic)
      Task {
        for await _ in channel.broadcastStream(event: "changed") {
          onWake()
        }
      }
      return channel
    }
    Task {
      for channel in channels {
        await channel.subscribe()
      }
    }
    return ChannelSubscription(channels: channels)
  }
}

private final class ChannelSubscription: KizunaSyncRealtimeSubscription {
  private let channels: [RealtimeChannelV2]

  init(channels: [RealtimeChannelV2]) {
    self.channels = channels
  }

  func cancel() {
    Task {
      for channel in channels {
        await channel.unsubscribe()
      }
    }
  }
}
