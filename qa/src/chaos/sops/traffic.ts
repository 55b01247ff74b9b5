/** Simulates programs that post events, start procedures by hand and ask for approvals, again and again until they are accepted. */
import type { SopDispatch } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { type Answer, ask, pause } from '../request.ts'
import type { PostedEvent } from './history.ts'
import { lineCommand, sopsAt } from './procedures.ts'
import type { SopsRecorder } from './recorder.ts'
import { APPROVAL_SECS } from './world.ts'

const PATHS = ['/pipe', '/pipe', '/guarded', '/worked', '/careful', '/webhook'] as const
const SHARE = { gated: 0.5, byHand: 0.06, question: 0.12, forEver: 0.3, repeated: 0.3, cancelled: 0.5 }
const RETRY_MS = 60
const CANCEL_MS_MAX = 300
const UNAVAILABLE = 503

/** Makes one request. Resolves to true once no further attempt is needed. */
type Post = (url: string, signal: AbortSignal) => Promise<boolean>

export class SopsTraffic {
  readonly #recorder: SopsRecorder
  readonly #random: Random
  /** Requests that were not accepted yet. */
  readonly #open = new Set<Post>()

  constructor(recorder: SopsRecorder, random: Random) {
    this.#recorder = recorder
    this.#random = random
  }

  /** Posts what is not accepted yet, then `count` new requests at random moments within `ms`. Ends with `signal`. */
  async run(url: string, { count, ms }: { readonly count: number; readonly ms: number }, signal: AbortSignal): Promise<void> {
    const open = [...this.#open].map((post) => this.#deliver(post, url, signal))
    const fresh = Array.from({ length: count }, async () => {
      await pause(this.#random.within(0, ms), signal)
      if (!signal.aborted) await this.#deliver(this.#next(), url, signal)
    })
    await Promise.all([...open, ...fresh])
  }

  async #deliver(post: Post, url: string, signal: AbortSignal): Promise<void> {
    this.#open.add(post)
    while (!signal.aborted) {
      if (await post(url, signal)) {
        this.#open.delete(post)
        if (this.#random.chance(SHARE.repeated)) await post(url, signal)
        return
      }
      await pause(RETRY_MS, signal)
    }
  }

  #next(): Post {
    if (this.#random.chance(SHARE.question)) return this.#newQuestion()
    return this.#random.chance(SHARE.byHand) ? this.#newRunByHand() : this.#newEvent()
  }

  #newEvent(): Post {
    const path = this.#random.pick(PATHS)
    const isGated = this.#random.chance(SHARE.gated)
    const mark = `ev-${this.#recorder.nextNumber()}`
    const event: PostedEvent = { mark, path, sops: sopsAt(path, isGated) }
    this.#recorder.add(event)
    const body = { message: 'go', mark, gated: isGated, command: lineCommand('guarded', 2, mark) }
    return async (url, signal) => {
      const answer = await ask(url, { path, body, headers: { 'x-idempotency-key': mark }, signal })
      return answer !== undefined && this.#isAccepted(mark, answer)
    }
  }

  #isAccepted(mark: string, { status, body }: Answer): boolean {
    if (status === UNAVAILABLE || body.state === 'in_flight') return false
    if (status !== 200) this.#recorder.see({ type: 'refused', mark, status })
    else if (body.status === 'duplicate') this.#recorder.see({ type: 'duplicate', mark })
    else this.#recorder.see({ type: 'accepted', mark, results: dispatchesIn(body) })
    return true
  }

  /** The route has no idempotency key, so every attempt starts a run of its own, and an attempt without an answer is not repeated. */
  #newRunByHand(): Post {
    return async (url, signal) => {
      const mark = `hand-${this.#recorder.nextNumber()}`
      const answer = await ask(url, { path: '/api/sops/gated/runs', body: { payload: { mark } }, signal })
      const run = answer?.body.run_id
      if (typeof run !== 'string') return true
      this.#recorder.see({ type: 'begun', run })
      if (!this.#random.chance(SHARE.cancelled)) return true
      await pause(this.#random.within(0, CANCEL_MS_MAX), signal)
      await ask(url, { path: `/api/sops/runs/${run}/cancel`, body: { reason: 'enough' }, signal })
      return true
    }
  }

  #newQuestion(): Post {
    const run = `ext-${this.#recorder.nextNumber()}`
    const body = {
      type: 'human_approval_request',
      run_id: run,
      step_id: 'deploy',
      content: { title: `May ${run} go on?`, message: 'A program outside of the daemon waits.' },
      timeout: this.#random.chance(SHARE.forEver) ? 0 : APPROVAL_SECS,
      channels: ['messenger'],
    }
    return async (url, signal) => {
      const answer = await ask(url, { path: '/api/channel-events', body, signal })
      if (answer?.status !== 200) return false
      this.#recorder.see({ type: 'opened', run, step: 'deploy' })
      return true
    }
  }
}

/** The results of an accepted event, from the form of the API. */
function dispatchesIn({ results }: Answer['body']): SopDispatch[] {
  const rows = Array.isArray(results) ? (results as Readonly<Record<string, string>>[]) : []
  return rows.map(({ sop = '', status, run_id: runId = '', reason = '' }) => {
    if (status === 'started') return { sop, status, runId }
    return status === 'waiting' ? { sop, status, runId, reason } : { sop, status: 'skipped', reason }
  })
}
