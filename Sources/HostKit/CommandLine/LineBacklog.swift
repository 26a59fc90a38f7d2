/// Lines that wait for their reader, oldest first. A value without I/O.
///
/// Events are bounded: over the limits the oldest make room for the newest, are counted, and one line in their place
/// says how many they were. Results are never dropped.
struct LineBacklog {
  /// Text with its line break.
  struct Line: Sendable {
    let text: String
    /// What is written in the place of so many lines when this is the last of them; nil for a result.
    let notice: (@Sendable (_ dropped: Int) -> String)?

    var isResult: Bool { notice == nil }
  }

  /// How much of events may wait; the newest always may.
  struct Limits: Sendable {
    var bytes = 4 << 20
    var lines = 32_768
  }

  private let limits: Limits
  /// Those before `head` are taken.
  private var lines: [Line?] = []
  private var head = 0
  private var eventBytes = 0
  private var events = 0
  private var results = 0
  private var dropped = 0
  private var notice: (@Sendable (Int) -> String)?

  init(limits: Limits = Limits()) {
    self.limits = limits
  }

  var isEmpty: Bool { head == lines.count && dropped == 0 }
  var holdsResults: Bool { results > 0 }

  mutating func append(_ line: Line) {
    if !line.isResult {
      while isOver(adding: line), dropOldestEvent() {}
    }
    lines.append(line)
    count(line, 1)
  }

  /// The next line to write: before the line that follows those that were dropped, the one that says so.
  mutating func next() -> Line? {
    if dropped > 0, let notice {
      defer { dropped = 0 }
      return Line(text: notice(dropped), notice: notice)
    }
    guard head < lines.count, let line = lines[head] else { return nil }
    advance()
    count(line, -1)
    return line
  }

  private func isOver(adding line: Line) -> Bool {
    eventBytes + line.text.utf8.count > limits.bytes || events >= limits.lines
  }

  /// - Returns: false when there is none.
  private mutating func dropOldestEvent() -> Bool {
    guard let index = lines[head...].firstIndex(where: { $0?.isResult == false }), let line = lines[index] else {
      return false
    }
    if index == head { advance() } else { lines.remove(at: index) }
    count(line, -1)
    dropped += 1
    notice = line.notice
    return true
  }

  private mutating func advance() {
    lines[head] = nil
    head += 1
    // Rarely enough that moving the rest costs each line next to nothing.
    if head == lines.count {
      lines.removeAll(keepingCapacity: lines.count <= 1024)
      head = 0
    } else if head > max(1024, lines.count / 2) {
      lines.removeFirst(head)
      head = 0
    }
  }

  private mutating func count(_ line: Line, _ sign: Int) {
    if line.isResult {
      results += sign
    } else {
      events += sign
      eventBytes += sign * line.text.utf8.count
    }
  }
}
