/** One sync (client-server API, "Syncing"). Its position is stored once its keys and messages are durable. */
import { list, type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Clock, errorText, type ListenContext } from '@sluice/sdk'
import { isRefused } from './api.ts'
import type { Intake } from './intake.ts'
import { readMissed } from './missed.ts'
import { problemOf, recordDevice, type Session } from './session.ts'

export interface SyncOptions {
  readonly session: Session
  readonly intake: Intake
  readonly context: ListenContext
  readonly clock: Clock
  /** The homeserver answers the first sync of a connection at once. */
  readonly isFirst: boolean
}

/** The position from which the next sync continues, and when it was reached. */
interface Position {
  readonly token: string
  readonly atMs: number
}

const POSITION = 'state/position'
const HOLD_MS = 30_000
const SYNC_MS_MAX = 60_000
const TIMELINE_MAX = 100
const ANSWER_BYTES_MAX = 64 * 1_048_576
/** The shortest time between two syncs without events, for homeservers that do not wait for one. */
const HELD_MS_MIN = 500
/** The homeserver no longer knows the position. */
const LOST_POSITION = ['M_UNKNOWN_POS', 'M_INVALID_PARAM']

export async function syncOnce(options: SyncOptions): Promise<void> {
  const { session, context, clock, isFirst } = options
  const { api, vault, rooms } = session
  const position = await readPosition(session)
  const startedMs = clock.monotonicMs()
  let sync: Members
  try {
    sync = await api.client('GET', ['sync'], {
      query: {
        since: position?.token,
        timeout: isFirst || !position ? '0' : String(HOLD_MS),
        filter: JSON.stringify(filterOf(rooms.acceptsAll ? undefined : rooms.acceptedIds, position === undefined)),
        set_presence: 'online',
      },
      signal: context.signal,
      timeoutMs: SYNC_MS_MAX,
      answerBytesMax: ANSWER_BYTES_MAX,
    })
  } catch (error) {
    if (!position || !isRefused(error, ...LOST_POSITION)) throw error
    context.report.gap({ sinceMs: position.atMs, why: 'the homeserver no longer knows how far the bot has read' })
    vault.set(POSITION, undefined)
    return vault.flush()
  }
  const token = text(sync.next_batch)
  if (token === '') throw new AppError('upstream', 'The homeserver answered a sync without a position')
  await takeSync(sync, position, options)
  if (context.signal.aborted) return
  vault.put(POSITION, { token, atMs: clock.nowMs() } satisfies Position)
  await vault.flush()
  await runOutgoing(options)
  const { changed } = members(sync.device_lists)
  if (list(changed).includes(session.identity.userId)) await recordDevice(session)
  session.receipts.send(context.signal)
  const isIdle = !isFirst && token === position?.token
  if (isIdle && clock.monotonicMs() - startedMs < HELD_MS_MIN) await clock.sleep(HELD_MS_MIN, context.signal)
}

/** Keeps the keys up to date. Messages still arrive after a failure, except a failure of the device itself. */
async function runOutgoing({ session, context }: SyncOptions): Promise<void> {
  try {
    await session.device.runOutgoing(context.signal)
    await session.verifications.advance(context.signal)
    context.report.event()
  } catch (error) {
    if (!(error instanceof AppError) || error.code === 'forbidden' || error.code === 'unavailable') throw error
    session.log.warn('keys not exchanged, trying again after the next sync', { channel: 'fedchat', reason: errorText(error) })
  }
}

async function takeSync(sync: Members, position: Position | undefined, options: SyncOptions): Promise<void> {
  const { session, intake, context, clock } = options
  const { rooms, device, verifications } = session
  await device.receive(sync)
  verifications.noteToDevice(members(sync.to_device).events)
  await intake.retryWaiting(clock.nowMs())
  const { join, invite } = members(sync.rooms)
  for (const [room, state] of Object.entries(members(invite))) {
    await intake.takeInvite(room, members(state), context.signal)
    context.report.problem(problemOf(session))
  }
  for (const [room, value] of Object.entries(members(join))) {
    if (rooms.isAccepted(room)) await takeRoom(room, members(value), position, options)
  }
  await intake.settled()
}

async function takeRoom(room: string, joined: Members, position: Position | undefined, options: SyncOptions): Promise<void> {
  const { session, intake, context } = options
  const { rooms, identity } = session
  rooms.takeSummary(room, joined.summary)
  const timeline = members(joined.timeline)
  if (timeline.limited === true) rooms.forgetMembers(room)
  for (const event of list(members(joined.state).events)) rooms.takeState(room, members(event))
  if (session.bot.mentionOnly) await rooms.learnCount(room, context.signal)
  const events = list(timeline.events).map(members)
  // Messages before the bot was there are history, and so is everything in its first sync.
  const joinedAt = position ? events.findLastIndex((event) => isJoinOf(event, identity.userId)) : events.length
  if (timeline.limited === true && position && joinedAt < 0) {
    const missed = await readMissed({ session, room, from: text(timeline.prev_batch), to: position.token, context, sinceMs: position.atMs })
    for (const event of missed) await intake.take(room, event)
  }
  for (const [index, event] of events.entries()) {
    if (event.state_key !== undefined) rooms.takeState(room, event)
    if (index > joinedAt) await intake.take(room, event)
  }
}

/** True for the event with which the bot came into the room, not for one that changes its name. */
function isJoinOf({ type, state_key: user, content, unsigned }: Members, userId: string): boolean {
  const before = members(members(unsigned).prev_content).membership
  return type === 'm.room.member' && user === userId && members(content).membership === 'join' && before !== 'join'
}

async function readPosition({ vault }: Session): Promise<Position | undefined> {
  const { token, atMs } = members(parsedOrUndefined((await vault.read(POSITION)).get(POSITION) ?? ''))
  return text(token) === '' ? undefined : { token: text(token), atMs: Number(atMs) || 0 }
}

/** The homeserver sends the membership of each writer, with the display name, also if it did so before. */
const MEMBERS_OF_MESSAGES = { lazy_load_members: true, include_redundant_members: true }

/** See "Filtering" in the client-server API. */
function filterOf(accepted: readonly string[] | undefined, isInitial: boolean): object {
  const only = accepted ? { rooms: accepted } : {}
  return {
    presence: { types: [] },
    account_data: { types: [] },
    room: {
      ...{ ephemeral: { types: [] }, account_data: { types: [] } },
      state: { ...MEMBERS_OF_MESSAGES, ...only },
      timeline: { limit: isInitial ? 1 : TIMELINE_MAX, ...MEMBERS_OF_MESSAGES, ...only },
    },
  }
}
