/** Starts turns that clients asked for earlier, such as by a reminder. Each key starts one turn, over crashes and restarts. */
import { type LimitedClient, newTurnId } from '@sluice/agent'
import type { Deliveries } from '@sluice/delivery'
import {
  AppError,
  type Inbound,
  lowestStanding,
  parseAgentKey,
  parseChatSession,
  parseSenderKey,
  type Standing,
  type StartTurn,
  sha256Hex,
} from '@sluice/sdk'
import type { OpenRuntime } from './runtime/open-runtime.ts'

const SOURCE = 'schedule'
const DEVICE = 'device:'
/** The callers without a device: a daemon without pairing has `local`, and the command line is `cli`. */
const LOCAL: readonly string[] = ['local', 'cli']

type Starting = Parameters<StartTurn>[0]

/** After a restore at `restoredAtMs`, earlier turns count as started: they may have been, after the backup was made. */
export const createStartTurn =
  (runtime: OpenRuntime, deliveries: Pick<Deliveries, 'deliver'>, restoredAtMs?: number): StartTurn =>
  async (turn) => {
    if (restoredAtMs !== undefined && turn.atMs <= restoredAtMs) return 'known'
    return parseChatSession(turn.session) ? deliver(runtime, deliveries, turn) : accept(runtime, turn)
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

/** The id of the turn is made of the key: the store has each id once. */
async function accept(runtime: OpenRuntime, { key, session, caller, standing, text, atMs }: Starting): ReturnType<StartTurn> {
  const person = parseAgentKey(caller).key
  const limited = await limitedOf(runtime, person, standing)
  if (limited === 'gone') return 'gone'
  const { key: ofAgent } = parseAgentKey(session)
  try {
    await runtime.agent.accept({
      id: turnIdOf(key, atMs),
      source: SOURCE,
      session,
      owner: ofAgent.slice(0, ofAgent.indexOf('/')),
      caller: person,
      text,
      client: runtime.clients.ofCaller(person),
      limited,
      maySilent: true,
    })
    return 'started'
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return 'known'
    throw error
  }
}

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
