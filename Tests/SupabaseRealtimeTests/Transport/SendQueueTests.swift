import Testing

@testable import SupabaseRealtime

@Suite struct SendQueueTests {
  private func taken(_ queue: inout SendQueue, _ item: SendQueue.Item) -> Bool { queue.add(item) }

  @Test func itemsLeaveInTheOrderTheyCame() {
    var queue = SendQueue(maximumBytes: 1 << 20, maximumItems: 1_000)
    var expected: [SendQueue.Item] = []
    var left: [SendQueue.Item] = []
    // More goes in than out, so that the space in front is reclaimed on the way.
    for number in 0..<500 {
      let item = SendQueue.Item.message(.text("\(number)"))
      #expect(taken(&queue, item))
      expected.append(item)
      if number % 3 != 0, let next = queue.next() { left.append(next) }
    }
    while let next = queue.next() { left.append(next) }
    #expect(left == expected)
    #expect(queue.isEmpty)
    #expect(queue.byteCount == 0)
  }

  @Test func itIsBoundedByBytesAndByItems() {
    var bytes = SendQueue(maximumBytes: 5, maximumItems: 100)
    #expect(taken(&bytes, .message(.binary([1, 2, 3]))))
    #expect(!taken(&bytes, .message(.text("äb"))))
    #expect(taken(&bytes, .message(.text("ä"))))
    #expect(taken(&bytes, .ping))
    #expect(bytes.byteCount == 5)
    _ = bytes.next()
    #expect(taken(&bytes, .message(.text("abc"))))

    var items = SendQueue(maximumBytes: 100, maximumItems: 2)
    #expect(taken(&items, .ping) && taken(&items, .ping))
    #expect(!taken(&items, .ping))
    items.removeAll()
    #expect(taken(&items, .ping))
    #expect(items.count == 1)
  }
}
