/** Watches the running calls: ends calls beyond a limit, speaks to silent callers, and counts the minutes. */
import { every, signalScope } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import { AppError, errorText } from '@sluice/sdk'
import { CONNECT_MS } from './call-streams.ts'
import type { CallsOptions } from './calls-options.ts'
import { KEPT_MAX, type LiveCall, type LiveCalls } from './live-calls.ts'
import type { Instruction, Parties } from './telephony.ts'
import type { Usage } from './usage.ts'

const LOOK_MS = 1000
export const REQUEST_MS = 10_000
const PRUNE_MS = 3_600_000
/** Texts that wait for the provider, and the ids of calls that have ended, are forgotten after this time. */
const KEPT_MS = 24 * 3_600_000
/** After this many silences in a row the call is ended. */
export const SILENCES_MAX = 2

export interface CallWatchOptions extends CallsOptions {
  readonly live: LiveCalls
  readonly usage: Usage
  readonly isAllowed: (parties: Pick<Parties, 'remote'>) => boolean
  /** Returns what tells the provider to go on with a call. */
  readonly talk: (call: LiveCall) => Promise<Instruction>
  /** Aborts when the daemon stops. */
  readonly closed: AbortSignal
}

export class CallWatch {
  readonly #options: CallWatchOptions

  constructor(options: CallWatchOptions) {
    this.#options = options
  }

  async open(): Promise<void> {
    const { clock, closed, log } = this.#options
    await this.#prune()
    void every(clock, LOOK_MS, closed, () =>
      this.#enforce().catch((error: unknown) => log.warn('the limits of calls could not be checked', { error: errorText(error) })),
    )
    void every(clock, PRUNE_MS, closed, () =>
      this.#prune().catch((error: unknown) => log.warn('old texts of calls could not be deleted', { error: errorText(error) })),
    )
  }

  /** Takes note that a call has ended. */
  async ended(id: string): Promise<void> {
    const { clock, keyValue, live, log, usage } = this.#options
    let seconds = 0
    const call = await live.delete(id, async ({ startedAtMs }) => {
      seconds = Math.round((clock.nowMs() - startedAtMs) / 1000)
      await usage.add(seconds, clock.nowMs())
      await keyValue.set(`ended/${id}`, { atMs: clock.nowMs() })
    })
    if (call) log.info('a call ended', { call: id, direction: call.parties.direction, seconds })
  }

  /** Ends calls that are too long, calls beyond the limits of the day, and calls whose caller stays silent. */
  async #enforce(): Promise<void> {
    const { clock, config, live, usage, isAllowed } = this.#options
    if (live.size === 0) return
    const nowMs = clock.nowMs()
    const limit = await usage.reached(live.runningSecs(), nowMs)
    for (const call of live.all()) {
      if (limit || nowMs - call.startedAtMs >= config.max_call_duration_secs * 1000)
        await this.#end(call, limit ?? 'max_call_duration_secs')
      else if (!isAllowed(call.parties)) await this.#end(call, 'the number is no longer on the allowlist')
      else if (call.expectedByMs !== undefined && nowMs >= call.expectedByMs) await this.#reconnect(call)
      else if (call.session && !call.session.isBusy && nowMs - call.activeAtMs >= config.silence_secs * 1000) await this.#prompt(call)
    }
  }

  /** Asks a provider that does not ask again for the media stream once more; ends the call if it was asked, or did not ask. */
  async #reconnect(call: LiveCall): Promise<void> {
    const { clock, closed, config, log, provider, talk } = this.#options
    if (provider.asksAgain || config.audio !== 'stream' || call.isReconnecting) return this.#end(call, 'the provider was not heard of')
    call.isReconnecting = true
    call.expectedByMs = clock.nowMs() + CONNECT_MS
    using limit = signalScope([closed], REQUEST_MS)
    await provider.answer(call.parties, await talk(call), limit.signal).catch((error: unknown) => {
      log.warn('the media stream of a call could not be connected again', { call: call.parties.call, error: errorText(error) })
      call.expectedByMs = clock.nowMs()
    })
  }

  async #prompt(call: LiveCall): Promise<void> {
    const { clock, closed, config } = this.#options
    call.activeAtMs = clock.nowMs()
    call.silences++
    if (call.silences > SILENCES_MAX) return this.#end(call, 'silence')
    await call.session?.say(config.silence_prompt, closed).catch(() => undefined)
  }

  async #end(call: LiveCall, why: string): Promise<void> {
    const { clock, closed, log, provider } = this.#options
    const { call: id } = call.parties
    const nowMs = clock.nowMs()
    if (call.endingAtMs !== undefined && nowMs - call.endingAtMs < REQUEST_MS) return
    log.info('a call is being ended', { call: id, why })
    call.endingAtMs = nowMs
    using limit = signalScope([closed], REQUEST_MS)
    await provider.hangUp(id, limit.signal).then(
      () => this.ended(id),
      (error: unknown) => {
        // The provider no longer has the call.
        if (error instanceof AppError && error.code === 'invalid_request') return this.ended(id)
        return log.warn('a call could not be ended', { call: id, error: errorText(error) })
      },
    )
  }

  async #prune(): Promise<void> {
    const { clock, keyValue, usage } = this.#options
    const nowMs = clock.nowMs()
    await usage.prune(nowMs)
    for (const prefix of ['say/', 'dial/', 'ended/'])
      for (const { key, value } of await keyValue.list(prefix, KEPT_MAX)) if (nowMs - atMsIn(value) > KEPT_MS) await keyValue.delete(key)
  }
}

const atMsIn = (stored: unknown): number => {
  const { atMs } = members(stored)
  return typeof atMs === 'number' ? atMs : 0
}
