/// Makes a failing history small: takes out as many steps as it can (delta debugging), then makes the rest plainer, as
/// long as it still fails.
struct SequenceShrinker {
  let fails: (MachineSequence) -> Bool

  /// - Parameter sequence: fails.
  /// - Returns: a sequence that fails and does not fail when any one of its steps is taken out.
  func shrink(_ sequence: MachineSequence) -> MachineSequence {
    var smallest = sequence
    repeat {
      removeSteps(&smallest)
    } while simplify(&smallest)
    return smallest
  }

  private func accept(_ sequence: inout MachineSequence, _ change: (inout MachineSequence) -> Void) -> Bool {
    var candidate = sequence
    change(&candidate)
    guard candidate != sequence, fails(candidate) else { return false }
    sequence = candidate
    return true
  }

  /// First large pieces, then smaller ones; single steps until none can go.
  private func removeSteps(_ sequence: inout MachineSequence) {
    var size = max(1, sequence.steps.count / 2)
    while true {
      var removed = false
      var start = 0
      while start < sequence.steps.count {
        let end = min(start + size, sequence.steps.count)
        if accept(&sequence, { $0.steps.removeSubrange(start..<end) }) { removed = true } else { start = end }
      }
      if size > 1 { size /= 2 } else if !removed { return }
    }
  }

  /// - Returns: whether anything became simpler.
  private func simplify(_ sequence: inout MachineSequence) -> Bool {
    var simpler = accept(&sequence) { $0.chance = nil }
    if accept(&sequence, { $0.isVersion1 = false }) { simpler = true }
    if accept(&sequence, { $0.usesCredentials = false }) { simpler = true }
    for index in sequence.steps.indices {
      for step in sequence.steps[index].simpler where accept(&sequence, { $0.steps[index] = step }) {
        simpler = true
        break
      }
    }
    return simpler
  }
}

extension MachineStep {
  /// Steps that say less, plainest first. None leads back here, so simplifying ends.
  fileprivate var simpler: [MachineStep] {
    switch self {
    case .advance(let seconds):
      [.nextTimer] + (seconds == seconds.rounded() ? [] : [.advance(seconds.rounded(.up))])
    case .sleep(let seconds): seconds == seconds.rounded() ? [] : [.sleep(seconds.rounded(.up))]
    case .token(let number) where number > 1: [.token(1)]
    case .closed(let code) where code != 1000: [.closed(1000)]
    case .failed(true): [.failed(isConfiguration: false)]
    case .refused(let status, let retryAfter, let body):
      [.failed(isConfiguration: false)] + (body == nil ? [] : [.refused(status, retryAfter: retryAfter, body: nil)])
        + (retryAfter == nil ? [] : [.refused(status, retryAfter: nil, body: body)])
    case .staleTimer(let index) where index > 0: [.staleTimer(0)]
    case .answer(let topic, let ref, "?", let reason): [.answer(topic, ref, status: "error", reason: reason)]
    default: []
    }
  }
}
