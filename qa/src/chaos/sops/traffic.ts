/** Programs that post events, start procedures by hand and ask for approvals: again and again until they are told that it was taken. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SopDispatch } from '@sluice/sdk'
import type { Random } from '../random.ts'
import { type Answered, ask } from './ask.ts'
import type { PostedEvent } from './history.ts'
import { lineCommand, sopsAt } from './procedures.ts'
import type { SopsRecorder } from './recorder.ts'
import { PATIENCE_SECS } from './world.ts'

export interface SopsTraffic {
  /** Posts what is not taken yet, then `count` new things at random moments within `ms`. Ends with `signal`. */
  run(url: string, load: { readonly count: number; readonly ms: number }, signal: AbortSignal): Promise<void>
  /** Things nobody has taken. */
  waiting(): number
}

const PATHS = ['/pipe', '/pipe', '/guarded', '/worked', '/careful', '/webhook'] as const
const SHARE = { gated: 0.5, byHand: 0.06, question: 0.12, forEver: 0.3, repeated: 0.3, cancelled: 0.5 }
const RETRY_MS = 60
const CANCEL_MS_MAX = 300
const UNAVAILABLE = 503

/** One attempt; true once it is taken. */
type Post = (url: string, signal: AbortSignal) => Promise<boolean>

export function createSopsTraffic(recorder: SopsRecorder, random: Random): SopsTraffic {
  const untaken = new Set<Post>()

  const newEvent = (): Post => {
    const path = random.pick(PATHS)
    const isGated = random.chance(SHARE.gated)
    const mark = `ev-${recorder.nextNumber()}`
    const event: PostedEvent = { mark, path, sops: sopsAt(path, isGated) }
    recorder.add(event)
    const body = { message: 'go', mark, gated: isGated, command: lineCommand('guarded', 2, mark) }
    return async (url, signal) => {
      const answered = await ask(url, { path, body, headers: { 'x-idempotency-key': mark }, signal })
      return answered !== undefined && isTaken(event, answered)
    }
  }
  const isTaken = ({ mark }: PostedEvent, { status, body }: Answered): boolean => {
    if (status === UNAVAILABLE || body.state === 'in_flight') return false
    if (status !== 200) recorder.see({ type: 'refused', mark, status })
    else if (body.status === 'duplicate') recorder.see({ type: 'duplicate', mark })
    else recorder.see({ type: 'accepted', mark, results: dispatchesIn(body) })
    return true
  }

  /** Nobody knows it again: whatever comes of it, the next one is another. */
  const newByHand = (): Post => {
    return async (url, signal) => {
      const mark = `hand-${recorder.nextNumber()}`
      const answered = await ask(url, { path: '/api/sops/gated/runs', body: { payload: { mark } }, signal })
      const run = answered?.body.run_id
      if (typeof run !== 'string') return true
      recorder.see({ type: 'begun', run })
      if (!random.chance(SHARE.cancelled)) return true
      await pause(random.within(0, CANCEL_MS_MAX), signal)
      await ask(url, { path: `/api/sops/runs/${run}/cancel`, body: { reason: 'enough' }, signal })
      return true
    }
  }

  const newQuestion = (): Post => {
    const run = `ext-${recorder.nextNumber()}`
    const body = {
      type: 'human_approval_request',
      run_id: run,
      step_id: 'deploy',
      content: { title: `May ${run} go on?`, message: 'Somebody elsewhere waits.' },
      timeout: random.chance(SHARE.forEver) ? 0 : PATIENCE_SECS,
      channels: ['messenger'],
    }
    return async (url, signal) => {
      const answered = await ask(url, { path: '/api/channel-events', body, signal })
      if (answered?.status !== 200) return false
      recorder.see({ type: 'opened', run, step: 'deploy' })
      return true
    }
  }
  const next = (): Post => {
    if (random.chance(SHARE.question)) return newQuestion()
    return random.chance(SHARE.byHand) ? newByHand() : newEvent()
  }

  const bring = async (post: Post, url: string, signal: AbortSignal): Promise<void> => {
    untaken.add(post)
    while (!signal.aborted) {
      if (await post(url, signal)) {
        untaken.delete(post)
        if (random.chance(SHARE.repeated)) await post(url, signal)
        return
      }
      await pause(RETRY_MS, signal)
    }
  }

  return {
    async run(url, { count, ms }, signal) {
      const left = [...untaken].map((post) => bring(post, url, signal))
      const fresh = Array.from({ length: count }, async () => {
        await pause(random.within(0, ms), signal)
        if (!signal.aborted) await bring(next(), url, signal)
      })
      await Promise.all([...left, ...fresh])
    },
    waiting: () => untaken.size,
  }
}

/** As the API writes them. */
function dispatchesIn({ results }: Answered['body']): SopDispatch[] {
  const rows = Array.isArray(results) ? (results as Readonly<Record<string, string>>[]) : []
  return rows.map(({ sop = '', status, run_id: runId = '', reason = '' }) =>
    status === 'started' ? { sop, status, runId } : { sop, status: 'skipped', reason },
  )
}

/** Ends early with `signal`. */
const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => undefined)
