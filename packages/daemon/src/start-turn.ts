/** Starts turns that clients asked for earlier, such as by a reminder. Each key starts one turn, over crashes and restarts, and a further one where it failed. */
import { type LimitedClient, newTurnId } from '@sluice/agent'
import { deliverySection, gatewaySection } from '@sluice/config'
import type { Deliveries } from '@sluice/delivery'
import { ageMs } from '@sluice/kit'
import {
  AppError,
  gatewayText,
  type Inbound,
  lowestStanding,
  type OperatorNotice,
  parseAgentKey,
  parseChatSession,
  parseSenderKey,
  type Standing,
  type StartTurn,
  sha256Hex,
  type TurnRow,
  withFullStop,
} from '@sluice/sdk'
import type { OpenRuntime } from './runtime/open-runtime.ts'

const SOURCE = 'schedule'
const DEVICE = 'device:'
/** The callers without a device: a daemon without pairing has `local`, and the command line is `cli`. */
const LOCAL: readonly string[] = ['local', 'cli']

const HOUR_MS = 3_600_000
/** A turn that has no answer yet is looked at, and one that failed is tried again, after a time that grows with its age. */
const FIRST_DELAY_MS = 5000
const LONGEST_DELAY_MS = 300_000

type Starting = Parameters<StartTurn>[0]

type Tell = (notice: OperatorNotice) => void

/** After a restore at `restoredAtMs`, earlier turns count as started: they may have been, after the backup was made. */
export const createStartTurn =
  (runtime: OpenRuntime, deliveries: Pick<Deliveries, 'deliver'>, tell: Tell, restoredAtMs?: number): StartTurn =>
  async (turn) => {
    if (restoredAtMs !== undefined && turn.atMs <= restoredAtMs) return 'known'
    return parseChatSession(turn.session) ? deliver(runtime, deliveries, turn) : accept(runtime, tell, turn)
  }

/** The turn is that of a message whose id is made of the key: the inbox keeps a message with a known id only once. */
async function deliver(runtime: OpenRuntime, deliveries: Pick<Deliveries, 'deliver'>, turn: Starting): ReturnType<StartTurn> {
  const chat = parseChatSession(turn.session)
  const channel = runtime.snapshot().channels.find(({ name }) => name === chat?.channel)
  if (!chat || !channel) throw new AppError('unavailable', `the channel '${chat?.channel}' is not connected`)
  const { account, conversation, thread } = chat
  // In a session that a room shares, the reminder is of the person who asked for it.
  const sender = chat.sender ?? parseSenderKey(turn.caller)?.sender
  if (sender === undefined) return 'gone'
  const message: Inbound = {
    id: `${SOURCE}:${turn.key}`,
    account,
    sender,
    to: { to: conversation, ...(thread !== undefined && { thread }) },
    ...(turn.isInRoom !== undefined && { addressed: turn.isInRoom ? 'mention' : 'direct' }),
    text: turn.text,
    // Platforms count the time for answers from the last message of the person.
    sentAtMs: (await runtime.store.sessions.get(turn.session))?.lastActiveAtMs ?? turn.atMs,
    ...(turn.standing === 'unverified' && { unverified: true }),
  }
  return (await deliveries.deliver(channel, message, turn.session, runtime.clock.nowMs())) ? 'started' : 'gone'
}

/** The id of each attempt is made of the key: the store has each id once. */
async function accept(runtime: OpenRuntime, tell: Tell, turn: Starting): ReturnType<StartTurn> {
  const { store, clock } = runtime
  const { session, caller, standing, text, earlier } = turn
  const nowMs = clock.nowMs()
  const begun = earlier?.attempt ?? 1
  const row = await store.turns.get(attemptId(turn, begun))
  // The row of an attempt that began is gone after its session was erased.
  if (!row && earlier) return 'known'
  const sinceMs = earlier?.sinceMs ?? row?.createdAtMs ?? nowMs
  let counted = earlier?.counted ?? 0
  const later = (attempt: number) => ({ attempt, counted, sinceMs, atMs: nowMs + delayMs(nowMs - sinceMs) })
  if (row?.endedAtMs === null) return later(begun)
  if (row) {
    const retryAtMs = row.endedAtMs + delayMs(row.endedAtMs - sinceMs)
    const state = afterAttempt(row, { counted, ageMs: ageMs(clock, sinceMs), ...runtime.config().core(deliverySection) })
    if (state === 'ended') return 'known'
    if (state === 'given up') return giveUp(runtime, tell, turn, row)
    // A time beyond the longest delay means that the clock was set back.
    if (retryAtMs > nowMs && retryAtMs - nowMs <= LONGEST_DELAY_MS) return { attempt: begun, counted, sinceMs, atMs: retryAtMs }
    if (state === 'counted') counted++
  }
  const person = parseAgentKey(caller).key
  const limited = await limitedOf(runtime, person, standing)
  if (limited === 'gone') return 'gone'
  const attempt = row ? begun + 1 : begun
  try {
    await runtime.agent.accept({
      id: attemptId(turn, attempt),
      source: SOURCE,
      session,
      owner: ownerOf(session),
      caller: person,
      text,
      client: runtime.clients.ofCaller(person),
      limited,
      maySilent: true,
    })
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'conflict')) throw error
  }
  return later(attempt)
}

interface Tries {
  readonly counted: number
  readonly ageMs: number
  readonly max_attempts: number
  readonly max_age_hours: number
}

/** Judges an attempt that ended, as the worker of the inbox judges those at a message. A turn that may have acted is not repeated. */
function afterAttempt({ status, error, model, starts }: TurnRow, { counted, ageMs, max_attempts, max_age_hours }: Tries) {
  if (status !== 'failed') return 'ended'
  if (!error || error.refusedFor !== undefined || model !== null || starts > 1) return 'given up'
  // A limit in dollars is reached. The turn waits until it has room again, however long that takes.
  if (error.code === 'rate_limited') return 'away'
  if (error.isPassing === true || error.code === 'unavailable') return ageMs >= max_age_hours * HOUR_MS ? 'given up' : 'away'
  return counted + 1 >= max_attempts ? 'given up' : 'counted'
}

/** Answers with the notice of messages that are given up, where the person finds the answer. */
async function giveUp({ store, clock, config, log }: OpenRuntime, tell: Tell, turn: Starting, row: TurnRow): Promise<'known'> {
  const { session, caller, text, key } = turn
  const reason = row.error?.message ?? 'no reason is known'
  log.error('reminder given up', { turn: row.id, caller, error: reason })
  // Each refusal has its own notice to operators.
  if (row.error?.refusedFor === undefined)
    tell({ kind: 'given_up', about: `reminder ${row.agent}`, text: `A reminder could not be answered: ${withFullStop(reason)}` })
  const response = gatewayText('unanswered', config().core(gatewaySection).texts).trim()
  if (response === '') return 'known'
  const nowMs = clock.nowMs()
  try {
    await store.turns.finish({
      id: turnIdOf(`${key}:given-up`, turn.atMs),
      sessionId: session,
      agent: row.agent,
      owner: ownerOf(session),
      source: SOURCE,
      status: 'done',
      input: text,
      response,
      model: null,
      error: null,
      inputTokens: 0,
      outputTokens: 0,
      costUsd: 0,
      attempts: 1,
      createdAtMs: nowMs,
      endedAtMs: nowMs,
      messages: [
        { role: 'user', content: [{ type: 'text', text }] },
        { role: 'assistant', content: [{ type: 'text', text: response }] },
      ],
    })
  } catch (error) {
    // A crash came after the notice.
    if (!(error instanceof AppError && error.code === 'conflict')) throw error
  }
  return 'known'
}

const ownerOf = (session: string): string => {
  const { key } = parseAgentKey(session)
  return key.slice(0, key.indexOf('/'))
}

/** The delay after this time of attempts. */
const delayMs = (ageMs: number): number => Math.min(LONGEST_DELAY_MS, Math.max(FIRST_DELAY_MS, ageMs))

const attemptId = ({ key, atMs }: Starting, attempt: number): string => turnIdOf(attempt === 1 ? key : `${key}:${attempt}`, atMs)

/** Resolves to the principal of the turn: as the person stands now, and no higher than `asked`; `gone` for a revoked device. */
async function limitedOf({ store, clock }: OpenRuntime, person: string, asked: Standing = 'operator'): Promise<LimitedClient | 'gone'> {
  if (!person.startsWith(DEVICE)) return { client: person, standing: LOCAL.includes(person) ? asked : 'stranger' }
  const device = await store.devices.find(person.slice(DEVICE.length))
  if (!device || (device.expiresAtMs !== null && device.expiresAtMs <= clock.nowMs())) return 'gone'
  return { client: person, standing: lowestStanding(device.role, asked) }
}

/** Returns an id that sorts like the ids of turns that begin at this time. */
const turnIdOf = (key: string, atMs: number): string => {
  const digits = sha256Hex(key)
  return `${newTurnId(atMs).slice(0, 15)}${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6, 18)}`
}
