/**
 * Notifies operators of what needs them: in the chats of `[notify]`, on the page and in the metrics. Most notices follow from events; callers
 * pass the others to the function that `startOperatorNotices` returns.
 */
import { randomUUID } from 'node:crypto'
import { approvalsSection, notifySection } from '@sluice/config'
import { isoTime, shellWord } from '@sluice/kit'
import { MAIN_AGENT, type OperatorNotice, oneLine, type SluiceEvent, type Store, withFullStop } from '@sluice/sdk'
import type { Runtime } from '../runtime.ts'
import { givenUp as readGivenUp } from './given-up.ts'
import { notifyNews } from './notify.ts'

/** A notice as the page shows it. */
export interface KeptNotice extends Pick<OperatorNotice, 'kind' | 'about' | 'text'> {
  /** RFC 3339. */
  readonly at: string
}

interface StoredNotice extends KeptNotice {
  readonly broken?: string
  /** Its messages to the chats are not queued yet. */
  readonly isDue?: true
}

const KEPT_MAX = 100
/** The reason of a failed run may be the whole report of an agent. */
const REASON_CHARS_MAX = 300
const MINUTE_MS = 60_000
/** An end is told within this time, or its event was lost. */
const ON_ITS_WAY_MS = 10_000
/** Ends from before are of an earlier release, or nobody wants to hear of them any more. */
const LOOK_BACK_MS = 24 * 60 * MINUTE_MS

interface Since {
  readonly sinceMs?: number
}

const kept = (store: Pick<Store, 'keyValue'>) => store.keyValue('gateway:notices')

/** Resolves to the newest notices, newest first. */
export async function listNotices(store: Pick<Store, 'keyValue'>, limit: number): Promise<KeptNotice[]> {
  const rows = await kept(store).list('', KEPT_MAX * 2)
  return rows
    .map(({ value }) => shown(value as StoredNotice))
    .reverse()
    .slice(0, limit)
}

/** Procedures choose their names, so two kinds may be about the same words. */
const subjectOf = ({ kind, about }: KeptNotice | OperatorNotice): string => `${kind} ${about}`

const shown = ({ at, kind, about, text }: KeptNotice): KeptNotice => ({ at, kind, about, text })

/** Returns the function that tells operators, and begins to tell them of events. It never throws, and does not wait for the chats. */
export function startOperatorNotices(runtime: Runtime): (notice: OperatorNotice) => void {
  const tell = (notice: OperatorNotice): void => {
    send(runtime, notice).catch((error) => runtime.log.error('operators not notified', { kind: notice.kind, error }))
  }
  runtime.bus.observe((event) => {
    const notice = noticeOf(event)
    if (notice) tell(notice)
  })
  return tell
}

/**
 * Tells operators what a crash, or the store, kept from them: notices whose messages to the chats are not queued, and ends of messages, replies
 * and runs without a notice. Never rejects. Call it once when the channels have started, and now and then, for nodes that have crashed.
 */
export async function tellDueNotices(runtime: Runtime): Promise<void> {
  const { clock, startedAtMs, snapshot, store } = runtime
  try {
    // What is later may be on its way.
    const toMs = Math.max(startedAtMs, clock.nowMs() - ON_ITS_WAY_MS)
    const rows = (await kept(store).list('', KEPT_MAX * 2)).map(({ key, value }) => ({ key, notice: value as StoredNotice }))
    for (const { key, notice } of rows) {
      const atMs = Date.parse(notice.at)
      if (!notice.isDue || atMs > toMs) continue
      // It was told if a crash came right after that.
      if (await tellChats(runtime, notice, { sinceMs: atMs })) await told(runtime, key, notice)
      else await kept(store).set(key, shown(notice))
    }
    const everyMs = snapshot().config.core(notifySection).every_mins * MINUTE_MS
    const looked = new Set<string>()
    for (const { atMs, event } of await readGivenUp(store, { fromMs: clock.nowMs() - LOOK_BACK_MS, toMs })) {
      const notice = noticeOf(event)
      if (!notice || looked.has(subjectOf(notice))) continue
      looked.add(subjectOf(notice))
      // A notice that was shorter ago than `every_mins` stands for this end as well.
      const sinceMs = atMs - everyMs
      const isTold = rows.some(({ notice: other }) => subjectOf(other) === subjectOf(notice) && Date.parse(other.at) >= sinceMs)
      if (!isTold) await send(runtime, notice, { sinceMs })
    }
  } catch (error) {
    runtime.log.error('operators not notified', { error })
  }
}

async function send(runtime: Runtime, { kind, about, text, broken }: OperatorNotice, since: Since = {}): Promise<void> {
  const { clock, snapshot, store } = runtime
  if (!snapshot().config.core(notifySection).kinds.includes(kind)) return
  const at = isoTime(clock.nowMs())
  const key = `${at} ${randomUUID()}`
  const notice: StoredNotice = { at, kind, about, text, ...(broken !== undefined && { broken }), isDue: true }
  // The page has the notice first, so that no crash hides it there, and the next start finds it.
  await kept(store).set(key, notice)
  if (await tellChats(runtime, notice, since)) await told(runtime, key, notice)
  else await kept(store).swap(key, notice, undefined)
}

/** Resolves to false when the same was told within `[notify] every_mins`, or since `sinceMs`. */
async function tellChats(runtime: Runtime, { kind, about, text, broken }: StoredNotice, { sinceMs }: Since = {}): Promise<boolean> {
  const { clock, snapshot } = runtime
  const { config } = snapshot()
  const { channels = config.core(approvalsSection).channels, every_mins } = config.core(notifySection)
  const chats = channels.filter((name) => name !== 'dashboard' && (broken === undefined || name.split(':')[0] !== broken))
  const atMs = clock.nowMs()
  const held = { client: `notice:${about}`, cause: `notice:${kind}`, sinceMs: atMs, untilMs: atMs } as const
  const quietMs = Math.max(every_mins * MINUTE_MS, sinceMs === undefined ? 0 : atMs - sinceMs + 1)
  return notifyNews({ channels: chats, title: '', message: text }, { held, quietMs }, runtime)
}

async function told({ bus, store }: Runtime, key: string, notice: StoredNotice): Promise<void> {
  const { kind, about, text } = notice
  const notices = kept(store)
  await notices.set(key, shown(notice))
  const all = await notices.list('', KEPT_MAX * 2)
  const old = all.slice(0, Math.max(0, all.length - KEPT_MAX))
  if (old.length > 0) await notices.setAll(new Map(old.map(({ key }) => [key, undefined] as const)))
  bus.emit({ type: 'operator_notice', kind, about, text })
}

/** Returns what operators are told of an event; undefined for most. */
export function noticeOf(event: SluiceEvent): OperatorNotice | undefined {
  switch (event.type) {
    case 'delivery':
      return event.state === 'dead' ? givenUp(event) : undefined
    case 'turn_failed':
      return event.refused_for === undefined ? undefined : refused(event, event.refused_for)
    case 'budget_spent': {
      const { period, limit_usd, until } = event
      const key = period === 'day' ? 'daily_limit_usd' : 'monthly_limit_usd'
      const text = `The budget of this ${period}, ${limit_usd} USD, is used up: messages wait until ${until}. A higher \`${key}\` in \`[cost]\` ends the wait.`
      return { kind: 'budget', about: `${period} ${until}`, text }
    }
    case 'channel_health': {
      const { channel, state, detail } = event
      if (state !== 'down' && state !== 'degraded') return undefined
      const about = withFullStop(`The channel ${channel} is ${state}${detail === null ? '' : `: ${detail}`}`)
      const text = `${about} \`sluice channels\` shows its state.`
      return { kind: 'channel', about: `${channel} ${state}`, text, broken: channel }
    }
    case 'channel_gap': {
      const { channel, since, why } = event
      const text = `Messages on ${channel} may be missing${since === null ? '' : ` since ${since}`}: ${withFullStop(oneLine(why, REASON_CHARS_MAX))} Sluice does not read them again.`
      return { kind: 'given_up', about: `missed ${channel}`, text }
    }
    case 'sop_run': {
      const { run_id, sop, status, reason } = event
      if (status === 'failed') {
        const text = `A run of the procedure ${sop} failed: ${withFullStop(oneLine(reason ?? 'no reason is known', REASON_CHARS_MAX))} \`sluice sop status ${run_id}\` shows it, and \`sluice sop replay ${run_id}\` starts it again.`
        return { kind: 'given_up', about: `procedure ${sop}`, text }
      }
      if (status !== 'expired') return undefined
      const text = `A run of the procedure ${sop} waited too long for others and expired. \`sluice sop replay ${run_id}\` starts it again.`
      return { kind: 'expired', about: sop, text }
    }
    case 'loop_stopped': {
      const { channel, sender, session_id, held = session_id, until } = event
      const text = `Sluice paused a conversation with ${sender} on ${channel} until ${until}, because the messages come as quickly as those of another bot. \`sluice limits reset ${shellWord(held)}\` ends the pause.`
      return { kind: 'loop', about: held, text }
    }
    case 'people_changed': {
      const { change, account, others } = event
      const what = {
        linked: 'is linked with',
        confirmed: 'shares its standing, once both sides agree, with',
        unlinked: 'is no longer linked with',
      }
      const text = `The account ${account} ${what[change]} ${others.join(', ')}. \`sluice people list\` shows all links; \`sluice people unlink ${shellWord(account)}\` separates it.`
      return { kind: 'people', about: `${change} ${account} ${others.join(' ')}`, text }
    }
    case 'config_rejected':
      return {
        kind: 'config',
        about: 'config',
        text: `A changed configuration is not valid, and the one before stays in force: ${event.error}`,
      }
    case 'feature_failed':
      return { kind: 'config', about: event.feature, text: `The feature ${event.feature} failed: ${event.error}` }
    case 'clock_jumped': {
      const seconds = Math.round(Math.abs(event.ms) / 1000)
      const text = `The clock of the machine is ${seconds} seconds ${event.ms < 0 ? 'behind' : 'ahead of'} the time that has passed: it was set${event.ms < 0 ? ' back' : ', or the machine slept'}. Times of messages and signatures depend on it.`
      return { kind: 'clock', about: 'clock', text }
    }
    default:
      return undefined
  }
}

/** Each kind of refusal is reported once for an agent, whichever sender asked it. */
function refused(event: Extract<SluiceEvent, { readonly type: 'turn_failed' }>, refusal: string): OperatorNotice {
  const { agent = MAIN_AGENT, source, error, inbox } = event
  const what = inbox === undefined ? `a turn of ${source}` : `a message on ${source}`
  const again = inbox === undefined ? '' : ` \`sluice inbox replay ${inbox}\` runs it again.`
  const text = `Sluice could not answer ${what}, and repeating it would fail too: ${withFullStop(error)}${again}`
  return { kind: 'refused', about: `${agent} ${refusal}`, text }
}

/** A message that a model refused has the notice of its turn. */
function givenUp({ direction, channel, number, error }: Extract<SluiceEvent, { readonly type: 'delivery' }>): OperatorNotice | undefined {
  const reason = error ?? 'no reason is known'
  if (direction === 'inbound') {
    if (reason.startsWith('refused: ')) return undefined
    const text = `A message on ${channel} could not be answered: ${withFullStop(reason)} \`sluice inbox replay ${number}\` runs it again.`
    return { kind: 'given_up', about: `inbox ${channel}`, text }
  }
  const text = `A reply on ${channel} could not be delivered: ${withFullStop(reason)} \`sluice outbox show ${number}\` shows it.`
  return { kind: 'given_up', about: `outbox ${channel}`, text, broken: channel }
}
