/** Shows a turn that waits or runs as the store shows one that has ended. */
import type { RunningTurn } from './turn.ts'
import type { LiveTurn } from './turn-scope.ts'

export function runningTurn(turn: LiveTurn): RunningTurn {
  const { progress, phase } = turn
  const attempts = progress?.attempts ?? 0
  return {
    id: turn.id,
    agent: turn.agent,
    sessionId: turn.session,
    owner: turn.owner ?? null,
    source: turn.source,
    status: phase === 'waiting' ? 'queued' : 'running',
    isAsking: phase === 'asking',
    input: turn.text,
    response: null,
    model: progress?.model ?? null,
    finishReason: null,
    error: null,
    ...(progress?.usage ?? { inputTokens: 0, outputTokens: 0, costUsd: 0 }),
    attempts,
    starts: attempts,
    createdAtMs: turn.createdAtMs,
    endedAtMs: null,
    context: null,
    inbox: turn.delivery?.inbox ?? null,
    steps: progress?.steps ?? [],
  }
}
