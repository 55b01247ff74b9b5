/**
 * The settings of a conversation by commands: its model, and whether its messages are answered. They are erased with the conversation. Those
 * that were made outside of threads hold in its threads too, because on some platforms each message begins one.
 */
import { agentKey, agentOfSession, chatSessionKey, type OwnedStore, parseChatSession, type Standing, sessionKeys } from '@sluice/sdk'

const OWNER = 'delivery'
const modelKey = (session: string): string => `${sessionKeys(session)}model`
const muteKey = (session: string): string => `${sessionKeys(session)}mute`

/** Until when nothing is answered; null without an end. */
interface Mute {
  readonly untilMs: number | null
  /** Absent: false. A mute of another person does not hold for operators, and only operators change or end one of an operator. */
  readonly isByOperator?: boolean
}

const TIME = /^(\d{1,3})\s{0,3}(m|h|d)[a-z]{0,10}$/i
const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 24 * 3_600_000 }

/** Returns when a time such as `8h` ends; undefined for other words. */
export function muteUntil(words: string, fromMs: number): number | undefined {
  const [, count = '', unit = ''] = TIME.exec(words) ?? []
  const ms = Number(count) * (UNITS_MS[unit.toLowerCase()] ?? 0)
  return ms > 0 ? fromMs + ms : undefined
}

interface NewMute {
  /** As `Mute.untilMs`; undefined ends the mute. */
  readonly untilMs: number | null | undefined
  /** The standing of the person who mutes. */
  readonly standing: Standing
  readonly nowMs: number
}

/**
 * Sets or ends the mute of a session; in a thread, ends that of its conversation too. Resolves to false, and changes nothing, for the mute of
 * an operator that another person changes.
 */
export async function setMute(owned: OwnedStore, session: string, { untilMs, standing, nowMs }: NewMute): Promise<boolean> {
  const keys = owned.keyValue(OWNER)
  const isByOperator = standing === 'operator'
  const mutes = await mutesInForce(owned, session, nowMs)
  if (!isByOperator && mutes.some((mute) => mute.isByOperator)) return false
  if (untilMs !== undefined) await keys.set(muteKey(session), { untilMs, isByOperator } satisfies Mute)
  else for (const one of sessionsOfSettings(session)) await keys.delete(muteKey(one))
  return true
}

async function mutesInForce(owned: OwnedStore, session: string, nowMs: number): Promise<readonly Mute[]> {
  const mutes: Mute[] = []
  for (const one of sessionsOfSettings(session)) {
    const mute = (await owned.keyValue(OWNER).get(muteKey(one))) as Mute | undefined
    if (mute && (mute.untilMs === null || mute.untilMs > nowMs)) mutes.push(mute)
  }
  return mutes
}

/** Whether messages of this standing are not answered. */
export async function isMuted(owned: OwnedStore, session: string, standing: Standing, nowMs: number): Promise<boolean> {
  const mutes = await mutesInForce(owned, session, nowMs)
  return mutes.some((mute) => standing !== 'operator' || mute.isByOperator === true)
}

export async function chooseModel(owned: OwnedStore, session: string, label: string): Promise<void> {
  await owned.keyValue(OWNER).set(modelKey(session), label)
}

/** Resolves to the chosen model of a session; undefined if none is chosen, or the chosen one is not configured any more. */
export async function chosenModel(owned: OwnedStore, session: string, configured: readonly string[]): Promise<string | undefined> {
  for (const one of sessionsOfSettings(session)) {
    const chosen = await owned.keyValue(OWNER).get(modelKey(one))
    const label = configured.find((other) => other === chosen)
    if (label !== undefined) return label
  }
  return undefined
}

/** Returns the sessions whose settings hold for a session: its own, and for that of a thread also the one outside of threads. */
function sessionsOfSettings(session: string): readonly string[] {
  const chat = parseChatSession(session)
  if (chat?.thread === undefined) return [session]
  const { thread: _thread, ...outside } = chat
  return [session, agentKey(agentOfSession(session), chatSessionKey(outside))]
}
