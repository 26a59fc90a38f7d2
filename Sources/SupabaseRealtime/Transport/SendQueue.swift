/// What waits to be sent on one connection, in order and bounded.
struct SendQueue {
  enum Item: Equatable {
    case message(RealtimeTransportMessage)
    case ping

    var byteCount: Int {
      switch self {
      case .message(.text(let text)): text.utf8.count
      case .message(.binary(let bytes)): bytes.count
      case .ping: 0
      }
    }
  }

  private let maximumBytes: Int
  private let maximumItems: Int
  private var items: [Item] = []
  private var head = 0
  private(set) var byteCount = 0

  init(maximumBytes: Int, maximumItems: Int) {
    self.maximumBytes = maximumBytes
    self.maximumItems = maximumItems
  }

  var isEmpty: Bool { head == items.count }
  var count: Int { items.count - head }

  /// - Returns: false when the queue is full; the item is not taken.
  mutating func add(_ item: Item) -> Bool {
    guard count < maximumItems, byteCount + item.byteCount <= maximumBytes else { return false }
    items.append(item)
    byteCount += item.byteCount
    return true
  }

  mutating func next() -> Item? {
    guard head < items.count else { return nil }
    let item = items[head]
    head += 1
    byteCount -= item.byteCount
    if head == items.count {
      items.removeAll(keepingCapacity: true)
      head = 0
    } else if head > 64 && head * 2 > items.count {
      items.removeFirst(head)
      head = 0
    }
    return item
  }

  mutating func removeAll() {
    items = []
    head = 0
    byteCount = 0
  }
}
