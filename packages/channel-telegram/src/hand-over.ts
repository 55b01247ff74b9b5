/** One update to the inbox: read, and durable once this resolves. */
import { AppError, type Deliver, type Host } from '@sluice/sdk'
import type { KnownNames } from './known-names.ts'
import { type Parsed, type ParseOptions, parseUpdate } from './parse-update.ts'

export interface HandOverOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly names: Pick<KnownNames, 'learn'>
  readonly deliver: Deliver
}

/** What an update was, `ignored` for nothing to us. Rejects if it could not be kept, for another attempt. */
export type HandOver = (update: unknown, id: number, options: ParseOptions) => Promise<Parsed | 'ignored'>

/** An update is left out when it was refused for so long, and so often, though the inbox could be written. */
const REFUSED_MS = 3_600_000
const REFUSALS_MIN = 10

export function createHandOver({ host: { clock, log }, names, deliver }: HandOverOptions): HandOver {
  let leftOut = 0
  /** The update at which everything stands still. */
  let stuck = { id: -1, sinceMs: 0, refusals: 0 }

  const isRefusedForGood = (id: number, error: unknown): boolean => {
    if (error instanceof AppError && error.code === 'unavailable') return false
    const nowMs = clock.monotonicMs()
    stuck = stuck.id === id ? { ...stuck, refusals: stuck.refusals + 1 } : { id, sinceMs: nowMs, refusals: 1 }
    return nowMs - stuck.sinceMs >= REFUSED_MS && stuck.refusals >= REFUSALS_MIN
  }
  const leaveOut = (id: number, error: unknown): 'ignored' => {
    leftOut += 1
    log.error('an update is left out: it could not be taken', { update: id, leftOut, error })
    return 'ignored'
  }
  const read = (update: unknown, id: number, options: ParseOptions): Parsed | 'ignored' => {
    try {
      return parseUpdate(update, options) ?? 'ignored'
    } catch (error) {
      return leaveOut(id, error)
    }
  }

  return async (update, id, options) => {
    const parsed = read(update, id, options)
    if (parsed === 'ignored' || !parsed.inbound) return parsed
    try {
      await names.learn(parsed.inbound.sender, parsed.username)
      await deliver(parsed.inbound)
      return parsed
    } catch (error) {
      if (isRefusedForGood(id, error)) return leaveOut(id, error)
      throw error
    }
  }
}
